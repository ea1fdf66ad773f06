// A pipeline on a clock of its own: workers, stages with declared costs, a ring, and a trainer that
// takes so long for a step. It gives the looks that a daemon's monitor would take, so that what is
// concluded from them can be compared with what another number of workers really brings.
//
// As in the engine there is no queue between stages: a worker takes the next block of rows through
// all of them. A step is begun when a slot is free for it. Helpers take whole steps that nobody has
// begun, as long as one more is left for the workers.
//
// Threads:  one.
// Cost:     some hundreds of nanoseconds a block.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "server/service/watch/analysis.h"
#include "tests/sim/dice.h"

namespace penstock::test {

struct ClockedStage {
  std::string name;
  double block_us = 0;  // processor time that a block of rows takes in it
};

struct ClockedOptions {
  std::vector<ClockedStage> stages;
  int workers = 1;
  int slots = 4;
  int blocks = 8;           // of a step
  double spread = 0.3;      // a cost is drawn between 1 - spread and 1 + spread of what is declared
  double trainer_us = 0;    // that the trainer works on a step
  int heavy_every = 0;      // every so many steps one is heavier than others; 0: none
  double heavy_factor = 1;  // by how much
  int helpers = 0;          // that make a step at a time each
  double helper_us = 0;     // that a step takes one of them
  uint64_t seed = 1;
};

class ClockedPipeline {
 public:
  explicit ClockedPipeline(const ClockedOptions& options);

  // Goes on for so long.
  void RunFor(double seconds);
  // Holds from the next block on.
  void SetWorkers(int workers);
  void SetSlots(uint32_t slots) { options_.slots = static_cast<int>(slots); }
  void SetTrainer(double trainer_us) { options_.trainer_us = trainer_us; }

  // As the monitor looks.
  Look TakeLook() const;
  // Of the clock's time since the beginning.
  double steps_taken() const { return static_cast<double>(taken_); }
  double trainer_waited_s() const { return trainer_waited_ns_ * 1e-9; }
  double now_s() const { return now_ns_ * 1e-9; }
  // Processor time that workers have used.
  double busy_s() const;

 private:
  struct Step {
    int begun = 0;  // blocks
    int done = 0;
  };
  struct Helper {
    double ends_ns;      // infinite: it has no step
    uint64_t step = 0;   // that it has
    uint64_t steps = 0;  // that it has made
  };
  void GoTo(double time_ns);
  void Deal();
  void Lend();
  bool HasSlots(uint64_t slots) const;
  // Between 1 - spread and 1 + spread.
  double Factor();

  ClockedOptions options_;
  Dice dice_;
  double now_ns_ = 0;
  std::vector<double> busy_ns_;    // of each stage
  std::vector<double> ends_ns_;    // of each worker's block; infinite: it has none
  std::vector<uint64_t> working_;  // the step of that block
  std::vector<Helper> helpers_;
  std::deque<Step> steps_;  // under way, from first_ on
  uint64_t first_ = 0;
  uint64_t published_ = 0;
  uint64_t taken_ = 0;
  bool training_ = false;
  double trained_ns_ = 0;  // when the step that is worked on is given back
  double slot_wait_ns_ = 0;
  double trainer_waited_ns_ = 0;
  uint64_t looks_ = 0, waiting_looks_ = 0;
  double next_look_ns_ = 0;
};

}  // namespace penstock::test
