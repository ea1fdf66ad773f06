#include "server/engine/run/away_blocks.h"

#include <algorithm>
#include <utility>

namespace penstock {

bool AwayBlock::RunBlock(const BatchProgram& program, absl::Span<const WorkNode* const> nodes,
                         uint32_t grain_rows, AwayTasks& away, StageClock& clock) {
  Step* const step = block->step;
  const uint32_t first = block->first_grain * grain_rows;
  if (first >= step->rows) return true;
  block_runner_.set_clock(clock);
  return block_runner_.RunInParts(program, step, first,
                                  std::min(block->grains * grain_rows, step->rows - first), nodes,
                                  away, this);
}

bool AwayBlock::RunSection(absl::Span<const WorkNode* const> nodes, AwayTasks& away,
                           StageClock& clock) {
  section_runner_.set_clock(clock);
  return section_runner_.RunInParts(section, nodes, away, this);
}

void AwayBlock::Ended(absl::Status status) {
  if (block) {
    block_runner_.Ended(std::move(status));
  } else {
    section_runner_.Ended(std::move(status));
  }
  // Who pops it sees what others have written, by the queue's lock.
  back_.Push(this);
}

AwayBlock* AwayBlocks::Take(StageClock& clock) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.empty()) {
    all_.push_back(std::make_unique<AwayBlock>(store_, files_, clock, back_));
    return all_.back().get();
  }
  AwayBlock* const block = idle_.back();
  idle_.pop_back();
  return block;
}

void AwayBlocks::Give(AwayBlock* block) {
  block->block.reset();
  block->section = nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(block);
}

}  // namespace penstock
