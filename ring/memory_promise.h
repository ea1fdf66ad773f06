// Memory that was promised to a ring at its creation, and that it takes when its batches need it:
// whoever asks for more leaves it.
//
// Threads:  any.
// Owns:     its part of the process's sum, which it gives back at the end.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::ring {

class MemoryPromise {
 public:
  MemoryPromise() = default;
  MemoryPromise(const MemoryPromise&) = delete;
  MemoryPromise& operator=(const MemoryPromise&) = delete;
  ~MemoryPromise() { Less(bytes_.load(std::memory_order_relaxed)); }

  void More(uint64_t bytes);
  // They were taken, or are not needed any more. REQUIRES: no more than were promised.
  void Less(uint64_t bytes);

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // Of all that live in this process.
  static uint64_t Total();

 private:
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace penstock::ring
