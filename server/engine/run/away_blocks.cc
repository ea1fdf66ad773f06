#include "server/engine/run/away_blocks.h"

#include <algorithm>
#include <utility>

namespace penstock {

bool AwayBlock::RunBlock(const BatchProgram& program, absl::Span<const WorkNode* const> nodes,
                         uint32_t grain_rows, AwayTasks& away, StageClock& clock) {
  Step* const step = block->step;
  const uint32_t first = block->first_grain * grain_rows;
  if (first >= step->rows) return true;
  const uint32_t rows = std::min(block->grains * grain_rows, step->rows - first);
  block_runner_.set_clock(clock);
  if (!has_fetched_) {
    block_runner_.Resolve(program, step, first, rows);
    const uint32_t width = program.width();
    if (Fetches(
            absl::MakeConstSpan(step->records).subspan(size_t{first} * width, size_t{rows} * width),
            away)) {
      return false;
    }
  }
  return block_runner_.RunInParts(program, step, first, rows, nodes, away, this);
}

bool AwayBlock::Fetches(absl::Span<const RecordRef> records, AwayTasks& away) {
  // Before it leaves: who brings it back may be faster.
  has_fetched_ = true;
  return far_.Begin(records, files_, away, this, /*stage=*/-1);
}

bool AwayBlock::RunSection(absl::Span<const WorkNode* const> nodes, AwayTasks& away,
                           StageClock& clock) {
  if (!has_fetched_ && Fetches(section->records, away)) return false;
  section_runner_.set_clock(clock);
  if (nodes.empty()) {
    section_runner_.Run(section);
    return true;
  }
  return section_runner_.RunInParts(section, nodes, away, this);
}

void AwayBlock::Ended(absl::Status status) {
  if (far_.Ended()) {
    // What was not to be had is told of by who reads it.
  } else if (block) {
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
    all_.push_back(std::make_unique<AwayBlock>(store_, files_, clock, back_, has_far_files_));
    return all_.back().get();
  }
  AwayBlock* const block = idle_.back();
  idle_.pop_back();
  return block;
}

void AwayBlocks::Give(AwayBlock* block) {
  block->block.reset();
  block->section = nullptr;
  block->EndFetching();
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(block);
}

}  // namespace penstock
