// Since when somebody holds up others, and how long the others wait for a group of ranks or of a
// split.
//
// Threads:  plain values, under the writer's mutex.
#pragma once

#include <cstdint>

#include "ring/consumer_spec.h"

namespace penstock::ring {

// Whoever holds up others, as long as it stands at one place.
struct HoldUp {
  uint64_t since_ns = 0;        // 0: it holds up nobody
  uint64_t mark = 0;            // where it stood then
  bool of_other_users = false;  // a consumer of another user is among those who wait

  // Looked at again, at `new_mark`: for how long it has held up others there.
  uint64_t Look(bool holds, bool others, uint64_t new_mark, uint64_t now_ns) {
    of_other_users = holds && others;
    if (!holds) {
      since_ns = 0;
      return 0;
    }
    if (since_ns == 0 || mark != new_mark) since_ns = now_ns;
    mark = new_mark;
    return now_ns - since_ns;
  }
};

// Whose the group is, and what it was told.
struct GroupWaiting {
  uint32_t uid = UINT32_MAX;  // of its first consumer; UINT32_MAX: not known
  bool is_guest = false;      // who may only attach
  // By Writer::SetSlowPolicy().
  bool is_told = false;
  SlowPolicy slow = SlowPolicy::kBlock;
  uint32_t lag_ms = kDefaultLagMs;
  HoldUp hold_up;

  void Take(const ConsumerSpec& spec) {
    if (uid == UINT32_MAX) {
      uid = spec.uid;
      is_guest = spec.is_guest;
    }
    if (spec.group_is_told) Tell(spec.slow, spec.lag_ms);
  }
  void Tell(SlowPolicy policy, uint32_t policy_lag_ms) {
    is_told = true;
    slow = policy;
    lag_ms = policy_lag_ms;
  }
};

}  // namespace penstock::ring
