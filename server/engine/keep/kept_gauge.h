// What an op keeps of its elements (cache, snapshot, save), for statistics.
//
// Threads:  written by the front; read by any.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

enum class KeptState : uint8_t {
  kNothing,    // the stage keeps nothing
  kComputing,  // all elements are computed; another one may be writing the file
  kFilling,    // elements are kept as they are computed
  kWhole,      // all are kept
  kFull,       // the first ones are kept, as many as the limit allows
  kDiskFull,   // the same, as many as the disk took
  kFailed,     // nothing is kept, since it could not be written or read
};

struct KeptGauge {
  std::atomic<KeptState> state{KeptState::kNothing};
  std::atomic<uint64_t> elements{0};  // that are kept
  std::atomic<uint64_t> bytes{0};     // of those
  std::atomic<uint64_t> hits{0};      // elements that were taken from there

  void Set(KeptState to, uint64_t kept_elements, uint64_t kept_bytes) {
    state.store(to, std::memory_order_relaxed);
    elements.store(kept_elements, std::memory_order_relaxed);
    bytes.store(kept_bytes, std::memory_order_relaxed);
  }
  void Hit() { hits.store(hits.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
};

// The name that statistics and metrics show.
inline const char* KeptStateName(KeptState state) {
  constexpr const char* kNames[] = {"",     "computing", "filling", "whole",
                                    "full", "disk full", "failed"};
  return kNames[static_cast<int>(state)];
}

}  // namespace penstock
