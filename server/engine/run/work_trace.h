// What workers do, span by span, while somebody asks for it.
//
// Threads:  Now(), Add() and AddBlock() by any worker; Begin() and End() by one thread at a time.
// Owns:     the spans between Begin() and End(), those of a worker in a lane of its own.
// Limits:   kMaxSpans; those beyond are counted.
// Cost:     one reading of an atomic for each thing that a worker does; while it is on, two clock
//           readings and a lock that nobody else wants for each, and 40 bytes for each span. Spans
//           never move.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/tick_clock.h"
#include "server/engine/compute/stage_clock.h"
#include "server/engine/run/function_times.h"

namespace penstock {

enum class WorkKind : uint8_t {
  kFront,        // `detail`: nothing
  kRead,         // nothing
  kBlock,        // the step
  kSection,      // nothing
  kErrand,       // nothing
  kStage,        // inside of a block or a section: the stage's index
  kFunction,     // inside of a stage: the index of its name in WorkSpans::functions
  kWaitForSlot,  // nothing
  kSleep,        // nothing
  // Rows that a process of the op's own computed (AwaySpan): the stage's index; `worker` is the
  // process
  kAway,
};

struct WorkSpan {
  uint64_t begin = 0;  // ticks; nanoseconds since Begin() in what End() returns
  uint64_t end = 0;
  uint64_t detail = 0;
  int worker = 0;
  WorkKind kind = WorkKind::kFront;
};

struct WorkSpans {
  std::vector<WorkSpan> spans;
  std::vector<std::string> functions;  // the names of kFunction
  uint64_t dropped = 0;
};

class WorkTrace {
 public:
  static constexpr size_t kMaxSpans = size_t{1} << 18;

  bool on() const { return on_.load(std::memory_order_relaxed); }

  // False when it is on already.
  bool Begin() {
    if (on()) return false;
    begin_.store(Ticks(), std::memory_order_relaxed);
    on_.store(true, std::memory_order_release);
    return true;
  }
  // The spans, with nanoseconds since Begin().
  WorkSpans End(const TickScale& scale);

  // What a worker begins now begins at so many ticks; 0 while the trace is off.
  uint64_t Now() const { return on() ? Ticks() : 0; }

  // What a worker has done since Now() returned `begin`; nothing where that was 0. What began
  // before Begin() begins there.
  void Add(int worker, WorkKind kind, uint64_t begin, uint64_t detail = 0);
  // The same of a block (`detail`: its step) or a section, with what each stage took of it and each
  // function of a stage, one behind the other: what the worker's clock has shown since it showed
  // `before`, and what its functions have told since then.
  void AddBlock(int worker, WorkKind kind, const StageClock& clock, uint64_t begin, uint64_t detail,
                const std::vector<uint64_t>& before,
                const std::vector<FunctionTimes::Function>& functions);

 private:
  static constexpr size_t kLanes = 64;
  static constexpr size_t kChunkSpans = 1024;
  using Chunk = std::array<WorkSpan, kChunkSpans>;

  // Workers beyond kLanes share one with another.
  struct alignas(64) Lane {
    std::mutex mutex;
    std::vector<std::unique_ptr<Chunk>> chunks;  // under mutex
    size_t spans = 0;                            // under mutex
    uint64_t dropped = 0;                        // under mutex
    std::map<std::string, uint64_t> functions;   // under mutex: their indices in this lane
  };

  // Under the lane's mutex.
  void AddSpan(Lane& lane, WorkSpan span);

  std::atomic<bool> on_{false};
  std::atomic<uint64_t> begin_{0};
  std::atomic<size_t> chunks_{0};  // of all lanes
  std::array<Lane, kLanes> lanes_;
};

}  // namespace penstock
