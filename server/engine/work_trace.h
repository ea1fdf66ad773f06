// What workers do, span by span, while somebody asks for it.
//
// Threads:  Add() by any worker; Begin() and End() by one thread at a time.
// Owns:     the spans between Begin() and End().
// Limits:   kMaxSpans; those beyond are counted.
// Cost:     one reading of an atomic for each thing that a worker does; while it is on, two clock
//           readings and a lock for each.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "server/base/tick_clock.h"

namespace penstock {

enum class WorkKind : uint8_t {
  kFront,        // `detail`: nothing
  kRead,         // nothing
  kBlock,        // the step
  kSegment,      // nothing
  kStage,        // inside of a block: the stage's index
  kWaitForSlot,  // nothing
  kSleep,        // nothing
};

struct WorkSpan {
  uint64_t begin = 0;  // ticks; nanoseconds since Begin() in what an executor returns
  uint64_t end = 0;
  uint64_t detail = 0;
  int worker = 0;
  WorkKind kind = WorkKind::kFront;
};

struct WorkSpans {
  std::vector<WorkSpan> spans;
  uint64_t dropped = 0;
};

class WorkTrace {
 public:
  static constexpr size_t kMaxSpans = size_t{1} << 18;

  bool on() const { return on_.load(std::memory_order_relaxed); }

  // False when it is on already.
  bool Begin() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (on()) return false;
    begin_ = Ticks();
    on_.store(true, std::memory_order_relaxed);
    return true;
  }
  // The spans, with ticks since Begin().
  WorkSpans End() {
    std::lock_guard<std::mutex> lock(mutex_);
    on_.store(false, std::memory_order_relaxed);
    return std::exchange(all_, WorkSpans());
  }

  // What began before Begin() begins there.
  void Add(WorkSpan span) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!on() || span.end <= begin_) return;
    if (all_.spans.size() == kMaxSpans) {
      ++all_.dropped;
      return;
    }
    span.begin = span.begin > begin_ ? span.begin - begin_ : 0;
    span.end -= begin_;
    all_.spans.push_back(span);
  }

 private:
  std::atomic<bool> on_{false};  // written under mutex_
  std::mutex mutex_;
  uint64_t begin_ = 0;  // under mutex_
  WorkSpans all_;       // under mutex_
};

}  // namespace penstock
