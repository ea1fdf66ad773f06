// Whether what a thread computes is wanted any more. What may take long for one row looks at it now
// and then, at least every few milliseconds, and is left by an exception where it is not: so that a
// stop, a deletion or a caller that has gone waits for no row.
//
// Threads:  a Scope and CheckStop() belong to one thread; the flag may be set from any.
// Cost:     CheckStop() reads two words, one of them shared and hardly ever written: for the outer
//           loops of kernels, not the inner ones.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

// Thrown by CheckStop(). No std::exception: nobody is to take it for an error and go on.
struct Stopped {};

class StopFlag {
 public:
  // What this thread computes ends when `stop` is true. Null: never. It must outlive the scope.
  class Scope {
   public:
    explicit Scope(const std::atomic<bool>* stop);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const std::atomic<bool>* const outer_;
  };

  // Null: nothing stops it.
  static const std::atomic<bool>* OfThisThread();
};

namespace stop_flag_internal {
inline constinit thread_local const std::atomic<bool>* current = nullptr;
}  // namespace stop_flag_internal

inline bool IsStopped() {
  const std::atomic<bool>* const stop = stop_flag_internal::current;
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

// Throws Stopped when it is so.
inline void CheckStop() {
  if (IsStopped()) [[unlikely]]
    throw Stopped();
}

// Looks once in `kWork` units of work, such as bytes or elements that are gone through: for loops
// whose rounds differ in length.
class StopLook {
 public:
  static constexpr uint64_t kWork = uint64_t{1} << 20;
  void Did(uint64_t work) {
    done_ += work;
    if (done_ < kWork) return;
    done_ = 0;
    CheckStop();
  }

 private:
  uint64_t done_ = 0;
};

}  // namespace penstock
