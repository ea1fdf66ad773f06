// How far a source has to read ahead so that consumers do not wait for a disk or network:
// arithmetic on what was measured, no clock and no threads.
//
// It goes twice as far while consumers wait and reading takes a good part of the workers' time.
// Where that makes reading no quicker it goes back, and tries again much later: the disk gives what
// it can.
//
// Threads:  one at a time.
// Cost:     some tens of nanoseconds a look.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "penstock/v1/control.pb.h"
#include "server/service/tune/patience.h"

namespace penstock {

class ReadAheadTuner {
 public:
  static constexpr int64_t kLeast = int64_t{512} << 10;

  // A look about once a second at the stage number `stage`; `bytes`: what it reads ahead, of at
  // most `most`. Returns what it is to be.
  // REQUIRES: stats.analysis() is filled in.
  int64_t Look(const v1::PipelineStats& stats, int stage, int64_t bytes, int64_t most);

  const std::string& reason() const { return reason_; }
  uint64_t changes() const { return changes_; }

 private:
  // Counters at a look.
  struct Sample {
    uint64_t running_ns = 0;
    uint64_t read_bytes = 0;
    uint64_t read_ns = 0;
  };
  int64_t Choose(int64_t bytes, int64_t wanted, std::string reason);

  std::deque<Sample> samples_;  // since the last change, kLooksBack + 1 at most
  std::string reason_ = "nothing was measured yet";
  uint64_t changes_ = 0;
  bool tried_ = false;   // whether the last change helped is not known yet
  int64_t before_ = 0;   // what it was before
  double speed_ = 0;     // of reading, before
  Rest rest_{60, 3840};  // until it is tried again, as it has not helped
};

}  // namespace penstock
