// What a consumer says of itself when it attaches: its group, its place in it, and where it stands.
//
// Threads:  plain values.
// Limits:   CheckSpec(); names as in attach.h, and printable (ring/printable.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ring/layout.h"
#include "ring/status.h"

namespace penstock::ring {

// How the consumers of a group share a stream.
enum class GroupMode : uint32_t {
  kBroadcast = 0,  // each sees every step
  kRank = 1,       // each sees its rows of every step
  kSplit = 2,      // each step goes to one of them
};

// What happens to a consumer that holds up another one.
enum class SlowPolicy : uint32_t {
  kBlock = 0,   // the others wait, for `lag_ms`; then it has to attach again where it stands
  kDetach = 1,  // it is detached at once
  kSkip = 2,    // it misses steps, which are counted
};

inline constexpr uint32_t kMaxWorld = kMaxConsumers;
inline constexpr uint32_t kDefaultLagMs = 60'000;

struct ConsumerSpec {
  std::string group = "default";
  GroupMode mode = GroupMode::kBroadcast;
  // Of a rank group: `replicas` consumers see the rows of one rank.
  uint32_t rank = 0;
  uint32_t world_size = 1;
  uint32_t replica = 0;
  uint32_t replicas = 1;
  // Of a split group: what a dead consumer held is lost instead of being given to another one.
  bool at_most_once = false;
  SlowPolicy slow = SlowPolicy::kBlock;
  uint32_t lag_ms = kDefaultLagMs;
  // Drawn by the client, the same over all its attachments; 0: it has none.
  uint64_t identity = 0;
  // Unique in its group while it is attached; "": it has none.
  std::string name;
  // Takes the place of a consumer of that name or rank, which is detached.
  bool take_over = false;
  // Set by the daemon: whose process it is, and whether it may send away those of others.
  uint32_t uid = UINT32_MAX;
  bool may_send_away = false;
  // Set by the daemon: the last eighth of the ring's places is kept from it if its user has that
  // many, for other users.
  bool shares_places = false;
  // Set by the daemon: its user may only attach. Others wait for such a user for a limited time in
  // all (ring/guest_purses.h).
  bool is_guest = false;
  // Set by the daemon: `slow` and `lag_ms` are what its group was told (Writer::SetSlowPolicy()),
  // and hold for a group of any kind.
  bool group_is_told = false;
  // It takes the steps from the device's memory too, where the ring has some
  // (ring/device_layout.h).
  bool on_device = false;

  uint32_t places() const { return mode == GroupMode::kRank ? world_size * replicas : 0; }
  uint32_t place() const { return rank * replicas + replica; }
};

// Where a consumer stands: nowhere yet without a step.
struct ConsumerPosition {
  uint64_t step = kNoStep;  // the next one that it wants
  std::string cursor;       // of that position; "" where it does not know
  // Leases of an earlier ring: those that it still holds, and those that it let go of last.
  std::vector<uint64_t> held;
  std::vector<uint64_t> returned;

  bool known() const { return step != kNoStep; }
};

inline constexpr size_t kMaxReportedLeases = kMaxSlots;

// kInvalidArgument with what is wrong.
Status CheckSpec(const ConsumerSpec& spec);

}  // namespace penstock::ring
