// A pipeline out of a grammar, with its files: sources of every kind, chains and trees of order
// ops, parsing, batches, more order ops.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/dice.h"
#include "tests/sim/shard_pool.h"
#include "tests/sim/simulated_files.h"

namespace penstock::test {

class DrawnPipeline {
 public:
  // Adds to `files` what it reads.
  // `folder`: where it keeps elements.
  DrawnPipeline(Dice& dice, SimulatedFiles& files, std::string folder);

  // In the short form of tests/support/stages.h.
  // Whether it has a section, which looks at records before they are asked for.
  bool looks_ahead() const { return looks_ahead_; }
  const std::string& text() const { return text_; }
  // Whether a wrong bit in any file is found: all records have checksums, and none is skipped for
  // them.
  bool finds_flips() const { return finds_flips_; }

 private:
  std::string Chain(int ops_max, int depth);
  std::string Source(bool* parses);
  std::string Shards(bool* parses);
  std::string AddFiles(const std::vector<PooledShard::State>& states, int count);
  std::string CountingOp(int most);
  // One whose values decide what follows; `number` is the feature that it may look at, or "".
  std::string DecidingOp(const std::string& number);

  Dice& dice_;
  SimulatedFiles& files_;
  const std::string folder_;
  int num_sources_ = 0;
  bool looks_ahead_ = false;
  bool finds_flips_ = true;
  std::string text_;
};

}  // namespace penstock::test
