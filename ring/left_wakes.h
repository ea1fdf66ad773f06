// Wake-ups that are left to a thread on the sleeper's own processor.
//
// Where consumers and workers share processors, waking a sleeper of another processor takes an
// interrupt there, and both lose some 20 us of work; the same call on the sleeper's own one takes a
// third (docs/decisions/0099). So a wake-up is left to a worker that passes by there within a
// moment, between two pieces of its work; one that nobody has made after that moment is made by
// whoever passes by anywhere. Nobody depends on it: a sleeper that says where it sleeps wakes up by
// itself some milliseconds later.
//
// Threads:  any.
// Owns:     nothing.
// Limits:   processors that are equal modulo kPlaces share a place, which costs time and nothing
//           else.
// Cost:     PassBy() a few loads and stores of the processor's own line, and a look at a shared
//           one.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "ring/layout.h"

namespace penstock::ring {

// The processor that the calling thread runs on, plus 1; 0 where the system does not tell.
inline uint32_t ProcessorHere() { return static_cast<uint32_t>(sched_getcpu() + 1); }

class LeftWakes {
 public:
  static constexpr uint32_t kPlaces = 64;
  // What a moment is: as long as a worker takes for a piece of work that is worth being left a
  // wake-up.
  static constexpr uint64_t kSoonNs = 60'000;

  // A worker is at `processor` (as ProcessorHere() has it), between two pieces of its work. Returns
  // the wait bits that it is to wake.
  uint32_t PassBy(uint32_t processor, uint64_t now_ns) {
    Place& place = PlaceOf(processor);
    place.before_ns.store(place.passed_ns.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
    place.passed_ns.store(now_ns, std::memory_order_relaxed);
    const uint64_t left = left_.load(std::memory_order_acquire);
    if (left == 0) return 0;
    if ((left & place_bit(processor)) != 0) return Take(processor % kPlaces);
    return now_ns - since_ns_.load(std::memory_order_relaxed) < kSoonNs ? 0 : TakeAll();
  }

  // A worker at `processor` is about to sleep. As PassBy().
  uint32_t Rest(uint32_t processor) {
    PlaceOf(processor).passed_ns.store(0, std::memory_order_relaxed);
    return TakeAll();
  }

  // Leaves a sleeper of `processor` to who passes by there; false where that is not to be expected,
  // or is the caller himself, who stands at `here`.
  bool Leave(uint32_t processor, uint32_t bits, uint32_t here, uint64_t now_ns) {
    if (processor == 0 || processor == here || !IsPassedSoon(PlaceOf(processor), now_ns))
      return false;
    PlaceOf(processor).bits.fetch_or(bits, std::memory_order_relaxed);
    if (left_.load(std::memory_order_relaxed) == 0)
      since_ns_.store(now_ns, std::memory_order_relaxed);
    // Behind the bits, which whoever sees it takes.
    left_.fetch_or(place_bit(processor), std::memory_order_release);
    return true;
  }

 private:
  struct alignas(kCacheLine) Place {
    std::atomic<uint64_t> passed_ns{0};  // when a worker was there last; 0: it rests
    std::atomic<uint64_t> before_ns{0};  // and the time before that
    std::atomic<uint32_t> bits{0};       // left there
  };

  static uint64_t place_bit(uint32_t processor) { return uint64_t{1} << processor % kPlaces; }
  Place& PlaceOf(uint32_t processor) { return places_[processor % kPlaces]; }

  // Its work was short the last time, and has not taken long yet. Clocks of two threads: the
  // difference may be below 0.
  static bool IsPassedSoon(const Place& place, uint64_t now_ns) {
    const uint64_t passed_ns = place.passed_ns.load(std::memory_order_relaxed);
    const uint64_t before_ns = place.before_ns.load(std::memory_order_relaxed);
    return passed_ns != 0 && passed_ns < before_ns + kSoonNs && now_ns < passed_ns + kSoonNs;
  }

  uint32_t Take(uint32_t place) {
    left_.fetch_and(~(uint64_t{1} << place), std::memory_order_acq_rel);
    return places_[place].bits.exchange(0, std::memory_order_acq_rel);
  }
  uint32_t TakeAll() {
    uint32_t bits = 0;
    for (uint64_t left = left_.load(std::memory_order_acquire); left != 0; left &= left - 1) {
      bits |= Take(static_cast<uint32_t>(__builtin_ctzll(left)));
    }
    return bits;
  }

  std::array<Place, kPlaces> places_;
  alignas(kCacheLine) std::atomic<uint64_t> left_{0};  // places with bits
  std::atomic<uint64_t> since_ns_{0};                  // when the first of them was left
};

}  // namespace penstock::ring
