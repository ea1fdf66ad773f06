// Whether a ring is faster with fewer slots: the same batches written to less memory, which may
// stay in a cache that is smaller than it says, or that neighbours use too.
//
// Steps are published in windows that use the present number of slots and another one by turns;
// where the other one's time is clearly shorter it is the present one from then on, and the next in
// the same direction is tried. Else it rests, and tries the other direction. Slow steps are not
// tried: what they cost is not the ring.
//
//   fewer  8 → 6 → 4 → 3        more  3 → 4 → 6 → 8        windows  a b b a  a b b a …
//
// Threads:  one at a time (the writer's mutex).
// Cost:     Publish() some nanoseconds. Trials take some 800 steps in 10 seconds.
#pragma once

#include <array>
#include <cstdint>

namespace penstock::ring {

class SlotTrial {
 public:
  static constexpr uint32_t kWindows = 12;  // of each number of slots
  static constexpr uint32_t kSteps = 32;    // of a window
  static constexpr uint32_t kSettling = 8;  // of those, before its time counts
  // Of a step; beyond that nothing is tried.
  static constexpr uint64_t kSlowNs = 2'000'000;
  static constexpr uint64_t kStartNs = 100'000'000;  // until the first trial
  static constexpr uint64_t kRestNs = 10'000'000'000;

  // Begins anew, with `most` slots; never fewer than `least`. With none to choose from it is off.
  void Begin(uint32_t least, uint32_t most);
  // All slots are used from now on.
  void Stop() { Begin(most_, most_); }
  bool is_on() const { return least_ < most_; }
  // How many slots are to be used.
  uint32_t used() const { return used_; }
  // What trials have chosen so far.
  uint32_t chosen() const { return chosen_; }

  // A step was published. REQUIRES: now_ns does not go back.
  void Publish(uint64_t now_ns);

 private:
  // The number to be tried next; the chosen one where there is none in that direction.
  uint32_t Other(bool fewer) const;
  void Rest(uint64_t until_ns);
  void StartWindow();
  void Decide(uint64_t now_ns);

  uint32_t least_ = 0, most_ = 0;
  uint32_t used_ = 0, chosen_ = 0, other_ = 0;
  bool fewer_ = true;    // the direction
  bool resting_ = true;  // until then, or where that is 0 for a while from the first step on
  uint64_t rest_until_ns_ = 0;
  uint32_t window_ = 0;  // of both numbers
  uint32_t steps_ = 0;   // of the window
  uint64_t begin_ns_ = 0;
  std::array<std::array<uint64_t, kWindows>, 2>
      times_ns_{};  // of the chosen number, and of the other
};

}  // namespace penstock::ring
