// The memory of split groups that outlives the daemon: which steps are in whose hands. The service
// keeps it in a file; without one a new daemon begins such a group anew.
//
// Threads:  called under the writer's lock, by any thread; must not block.
// Limits:   kMaxSlots entries for each group.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::ring {

// A step that is not done: in somebody's hands, or to be given out again.
struct SplitEntry {
  uint64_t step = 0;
  uint64_t identity = 0;     // of its holder; 0: nobody's
  bool redelivered = false;  // it was in other hands before
  std::string cursor;        // of the position in front of it
};

// Whose a group is: its first consumer's user; UINT32_MAX: not known.
struct SplitUser {
  uint32_t uid = UINT32_MAX;
  bool is_guest = false;  // who may only attach
};

struct SplitState {
  bool at_most_once = false;
  SplitUser user = {};
  uint64_t next = 0;  // steps from it on were never given out
  std::string next_cursor;
  std::vector<SplitEntry> entries;  // steps below `next` that are not here are done

  // The first step that is not done, and the cursor in front of it.
  uint64_t first() const {
    uint64_t step = next;
    for (const SplitEntry& entry : entries) step = entry.step < step ? entry.step : step;
    return step;
  }
  const std::string& first_cursor() const {
    const uint64_t step = first();
    for (const SplitEntry& entry : entries) {
      if (entry.step == step) return entry.cursor;
    }
    return next_cursor;
  }
};

class SplitLog {
 public:
  virtual ~SplitLog() = default;
  // A group that is new; what was there of that name is forgotten.
  virtual void Begin(std::string_view group, bool at_most_once, const SplitUser& user,
                     uint64_t next, std::string_view cursor) = 0;
  // Before the holder can see it. `entry.step` may be there already, in other hands.
  virtual void Set(std::string_view group, const SplitEntry& entry) = 0;
  virtual void Clear(std::string_view group, uint64_t step) = 0;
  // The group is forgotten: nobody goes on with it.
  virtual void End(std::string_view group) = 0;
  // After the entry of step `next` - 1.
  virtual void SetNext(std::string_view group, uint64_t next, std::string_view cursor) = 0;
};

}  // namespace penstock::ring
