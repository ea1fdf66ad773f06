// Which of a daemon's pipelines begin with the same work, found as they come and go.
//
// A pipeline joins with its plan. Where its work on a record begins with the stages that another
// one's begins with, and the two read a file in common, both become members of a group: from then
// on their workers have the results of those stages through SharedElements, whichever of them
// computes one. Nothing else is shared: order, cursor, ring and errors are each pipeline's own, and
// its bytes are what they would be alone. When the others have gone, a member computes as if
// nothing had been.
//
// What an element of the prefix costs is measured over its first rows; where that is less than
// handing it over, nothing is shared.
//
//     PrefixMember   of one executor, which owns it; knows what each node of its work shares
//     PrefixShare    one of those: the node's work in two steps, and the group
//     PrefixGroup    those who share the results of equal stages
//
// Threads:  Join() and the destruction of members from any thread; ShareOf() by workers, which
//           never wait for either.
// Owns:     the elements. A member and its shares live until the executor's workers are gone.
// Limits:   64 members of a group. A pipeline shares one prefix of each chain: who has less in
//           common with a group than its members have stays alone.
// Cost:     Join() compares the texts of stages, and fuses the rest of a node's work anew where a
//           prefix ends inside of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/engine/share/shareable_work.h"
#include "server/engine/share/shared_elements.h"
#include "server/engine/share/shared_stats.h"

namespace penstock {

enum class PrefixState : uint8_t { kMeasuring, kSharing, kCheap };

struct SharedPrefixOptions {
  uint64_t bytes_max = uint64_t{256} << 20;
  // What an element must cost at least, besides what its bytes do.
  uint64_t element_ns_min = 20'000;
  absl::Duration wait_max = absl::Milliseconds(100);
};

class PrefixGroup {
 public:
  PrefixGroup(SharedElements& elements, const SharedPrefixOptions& options)
      : id(elements.AddGroup()),
        elements(elements),
        wait_ns_max(static_cast<uint64_t>(absl::ToInt64Nanoseconds(options.wait_max))),
        element_ns_min_(options.element_ns_min) {}
  ~PrefixGroup() { elements.RemoveGroup(id); }

  PrefixState state() const { return state_.load(std::memory_order_relaxed); }
  // 0 before it is measured.
  uint64_t element_ns() const { return element_ns_.load(std::memory_order_relaxed); }
  void AddMeasured(uint64_t rows, uint64_t ns, uint64_t bytes);

  const SharedElements::Group id;
  SharedElements& elements;
  const uint64_t wait_ns_max;

 private:
  const uint64_t element_ns_min_;
  std::atomic<PrefixState> state_{PrefixState::kMeasuring};
  std::atomic<uint64_t> element_ns_{0};
  std::mutex mutex_;
  uint64_t rows_ = 0;   // under mutex_: measured
  uint64_t ns_ = 0;     // under mutex_
  uint64_t bytes_ = 0;  // under mutex_
};

struct PrefixCounters {
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
};

struct PrefixShare {
  static constexpr uint32_t kNoFile = UINT32_MAX;

  SplitWork work;
  std::shared_ptr<PrefixGroup> group;
  int member = 0;                      // of the group's elements
  std::vector<uint32_t> file_numbers;  // in the group, of each of the manifest
  PrefixCounters* counters = nullptr;
};

class SharedPrefixes;

class PrefixMember {
 public:
  ~PrefixMember();
  PrefixMember(const PrefixMember&) = delete;
  PrefixMember& operator=(const PrefixMember&) = delete;

  // What the node of that number shares at present, or null. Valid as long as the member.
  const PrefixShare* ShareOf(int shareable) const {
    return shareable < 0 ? nullptr : shares_[shareable].load(std::memory_order_acquire);
  }
  // One for each prefix that was ever shared.
  std::vector<SharedStats> Stats() const;

 private:
  friend class SharedPrefixes;

  // How one chain of the work stands. Under SharedPrefixes::mutex_.
  struct Chain {
    ShareableChain work;
    std::vector<std::unique_ptr<PrefixShare>> shares;  // the last is the present one
    size_t levels = 0;                                 // of that one
    std::unique_ptr<PrefixCounters> counters = std::make_unique<PrefixCounters>();
  };

  PrefixMember(std::shared_ptr<SharedPrefixes> prefixes, std::string pipeline, WorkToShare plan);

  const std::shared_ptr<SharedPrefixes> prefixes_;
  const std::string pipeline_;
  const WorkToShare plan_;
  std::set<std::string> files_;  // what tells each from others; constant
  std::vector<Chain> chains_;
  std::vector<std::atomic<const PrefixShare*>> shares_;  // SYNC prefix-share: by the node's number
};

class SharedPrefixes : public std::enable_shared_from_this<SharedPrefixes> {
 public:
  static std::shared_ptr<SharedPrefixes> Create(const SharedPrefixOptions& options);

  // Members of one pipeline do not share with each other.
  std::unique_ptr<PrefixMember> Join(std::string pipeline, WorkToShare plan);

 private:
  friend class PrefixMember;

  // Who is in a group, and how its members number their files.
  struct Membership {
    std::shared_ptr<PrefixGroup> group;
    size_t levels = 0;
    std::vector<PrefixMember*> members;
    std::map<std::string, uint32_t> files;
  };

  explicit SharedPrefixes(const SharedPrefixOptions& options)
      : options_(options), elements_(options.bytes_max) {}

  // All of these REQUIRE mutex_.
  void Pair(PrefixMember* member, PrefixMember::Chain* chain);
  Membership* MembershipOf(const PrefixMember::Chain& chain);
  bool Enter(PrefixMember* member, PrefixMember::Chain* chain, Membership* membership);
  void Exit(PrefixMember* member, PrefixMember::Chain* chain);
  void Leave(PrefixMember* member);
  std::vector<SharedStats> StatsOf(const PrefixMember& member);

  const SharedPrefixOptions options_;
  SharedElements elements_;
  std::mutex mutex_;
  std::vector<PrefixMember*> members_;                    // under mutex_
  std::vector<std::unique_ptr<Membership>> memberships_;  // under mutex_
};

}  // namespace penstock
