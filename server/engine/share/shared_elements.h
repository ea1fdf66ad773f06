// Computed elements that wait until every pipeline that shares them has taken them: a window of a
// fixed size over what the pipelines do.
//
// Whoever wants an element first makes it; who comes meanwhile waits for it, and who comes later
// takes it. An element goes when all members that read its file have taken it. Nobody depends on
// another one: what there is no room for, or has gone, or does not come in time, is computed by
// whoever wants it.
//
//     Find: kHit   it is there, and stays until Release()
//           kMine  the caller makes it: Room(), the bytes, Put(); or Drop()
//           kOpen  another one is making it: Wait(), then Find() again
//           kAlone the caller computes it for itself
//
// When the window is full, what waits stays and what is new is not kept: so a member that is
// further behind than the window still finds a part, where a window of the newest elements would
// have nothing for it ever. What nobody takes is stale after the members have made kStaleWindows
// windows more, and members that have asked for nothing during one window are not waited for by
// three or more.
//
// Threads:  safe from any thread. A caller never waits while an element is its own to make, so that
//           two cannot wait for each other.
// Owns:     the elements' memory; what was found or put stays until its caller has released it.
// Limits:   64 members of a group; an element is at most a quarter of the window.
// Cost:     each call takes one lock, once for a whole block of rows.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/engine/share/cell_region.h"

namespace penstock {

struct SharedElement;

class SharedElements {
 public:
  static constexpr int kMaxMembers = 64;
  static constexpr uint64_t kStaleWindows = 4;
  // What an element takes besides its cell.
  static constexpr uint64_t kElementOverhead = 256;

  explicit SharedElements(uint64_t bytes_max);
  ~SharedElements();

  // --- members of a group: those who compute the same of the same files ---
  using Group = uint32_t;
  Group AddGroup();
  // The member's number in the group; nullopt when it has too many. `files`: the group's numbers of
  // the files that it reads.
  std::optional<int> Join(Group group, absl::Span<const uint32_t> files);
  void Leave(Group group, int member);
  // REQUIRES: no members, and nobody who is still at work for it. What was found may still be
  // looked at.
  void RemoveGroup(Group group);

  // --- elements ---
  enum class Found { kOpen, kHit, kMine, kAlone };
  struct Row {
    uint32_t file = 0;  // by its number in the group
    uint64_t offset = 0;
    Found found = Found::kOpen;
    SharedElement* element = nullptr;  // kHit, kMine
    const uint8_t* data = nullptr;     // kHit: the cell, and its bytes
    uint32_t length = 0;
  };
  // Looks for the rows that are kOpen; of those that nobody has begun, the first `mine_max` become
  // the caller's.
  void Find(Group group, int member, absl::Span<Row> rows, size_t mine_max);
  // Until one of the kOpen rows is no longer in the making, or the time is over: false.
  bool Wait(Group group, absl::Span<const Row> rows, absl::Duration timeout);
  // Memory for the caller's row, row->length bytes; null where there is no room: the row is kAlone
  // then, and nobody waits for it any more.
  uint8_t* Room(Group group, Row* row);
  // The caller's rows, which Room() has given memory to and which are written, are there for all:
  // kHit.
  void Put(Group group, int member, absl::Span<Row> rows);
  // The caller does not make its rows after all.
  void Drop(absl::Span<Row> rows);
  // The kHit rows are no longer looked at.
  void Release(absl::Span<SharedElement* const> elements);

  struct Held {
    uint64_t elements = 0;
    uint64_t bytes = 0;
  };
  Held HeldBy(Group group) const;

 private:
  struct Key {
    Group group;
    uint32_t file;
    uint64_t offset;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct HashOfKey {
    size_t operator()(const Key& key) const;
  };
  struct Members {
    uint64_t all = 0;                 // a bit each
    std::vector<uint64_t> of_file;    // by its number
    uint64_t looked_at[kMaxMembers];  // made_bytes_ when each asked last
    Held held;
    uint64_t made_elements = 0;  // that were to be kept, and their bytes
    uint64_t made_bytes = 0;
  };
  friend struct SharedElement;

  // All of these REQUIRE mutex_.
  uint64_t NeededBy(const Members& members, uint32_t file) const;
  uint64_t Awake(const Members& members) const;
  bool IsStale(const SharedElement& element) const;
  void MakeRoom();
  void Remove(SharedElement* element);
  void Free(SharedElement* element);
  template <typename Gone>
  void RemoveAll(const Gone& gone);

  const uint64_t bytes_max_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  CellRegion region_;                                                            // under mutex_
  std::unordered_map<Key, std::unique_ptr<SharedElement>, HashOfKey> elements_;  // under mutex_
  std::unordered_map<SharedElement*, std::unique_ptr<SharedElement>> gone_;  // under mutex_: pinned
  std::list<SharedElement*> ready_;            // under mutex_: the oldest first
  std::unordered_map<Group, Members> groups_;  // under mutex_
  Group next_group_ = 0;                       // under mutex_
  uint64_t made_bytes_ = 0;                    // under mutex_: of all elements that were to be kept
  uint64_t swept_at_ = 0;                      // under mutex_: made_bytes_ then
  bool full_ = false;                          // under mutex_: what came last had no room
};

}  // namespace penstock
