// Where one worker's processor time goes, stage by stage, and how many elements left each stage.
//
// Threads:  Enter/Leave/Count by one worker; ticks() and elements() from any thread.
// Cost:     one clock reading (about 10 ns) for each Enter and Leave; used once a block, never once
//           a row.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/tick_clock.h"

namespace penstock {

class StageClock {
 public:
  explicit StageClock(int num_stages) : stages_(num_stages) {}

  // Time from here on belongs to `stage` until Leave(), but for what stages entered inside it take.
  // Returns the stage to give back to Leave().
  int Enter(int stage) {
    const int outer = current_;
    Switch(stage);
    return outer;
  }
  void Leave(int outer) { Switch(outer); }
  // The stage that time belongs to now; -1: none. By the worker.
  int current() const { return current_; }

  void Count(int stage, uint64_t elements) { Add(stages_[stage].elements, elements); }

  uint64_t ticks(int stage) const { return stages_[stage].ticks.load(std::memory_order_relaxed); }
  // Of each stage.
  std::vector<uint64_t> AllTicks() const {
    std::vector<uint64_t> all;
    CopyTicks(&all);
    return all;
  }
  // The same into a vector that has been used before, which costs no memory.
  void CopyTicks(std::vector<uint64_t>* all) const {
    all->clear();
    for (const Stage& stage : stages_) all->push_back(stage.ticks.load(std::memory_order_relaxed));
  }
  uint64_t elements(int stage) const {
    return stages_[stage].elements.load(std::memory_order_relaxed);
  }

  // For the length of a C++ scope.
  class Scope {
   public:
    Scope(StageClock& clock, int stage) : clock_(clock), outer_(clock.Enter(stage)) {}
    ~Scope() { clock_.Leave(outer_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StageClock& clock_;
    const int outer_;
  };

 private:
  struct Stage {
    std::atomic<uint64_t> ticks{0};
    std::atomic<uint64_t> elements{0};
  };
  static constexpr int kNone = -1;

  // The worker is the only writer: a plain addition, visible to readers.
  static void Add(std::atomic<uint64_t>& sum, uint64_t value) {
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  void Switch(int stage) {
    const uint64_t now = Ticks();
    if (current_ != kNone) Add(stages_[current_].ticks, now - since_);
    current_ = stage;
    since_ = now;
  }

  std::vector<Stage> stages_;
  int current_ = kNone;
  uint64_t since_ = 0;
};

}  // namespace penstock
