// The front's side of a section: an order op that deals in the elements that the section's tasks
// hand over.
//
// Tasks run ahead of need, in blocks whose bounds do not depend on time. Where nothing else is
// ahead, what there is of a block goes in a task of its own: the rest may come late, or never. A
// block that is large, by those before it, goes in several. The position is that of the input in
// front of the block that was looked at last, and how many of the block's elements have been taken;
// going there computes one block again.
//
// Threads:  one at a time (the front's lock).
// Limits:   kBlocksAhead blocks are in flight or waiting, fewer of many references or of many bytes
//           (server/engine/section/sections_ahead.h). What a block will come to is known only when
//           it is done: until then it counts as much as those before it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/order/order_op.h"
#include "server/engine/section/section.h"

namespace penstock {

class SectionOp final : public OrderOp {
 public:
  static constexpr size_t kBlocksAhead = 32;
  // A block that comes to more than this goes in parts: what one step of the work has made is to be
  // in a cache for the next.
  static constexpr uint64_t kPartBytes = uint64_t{2} << 20;
  // Behind so many no further block is asked for, unless there is none: batches of millions are
  // blocks too.
  static constexpr uint64_t kReferencesAhead = uint64_t{1} << 20;

  SectionOp(FrontContext& context, std::shared_ptr<const Section> section,
            std::unique_ptr<OrderOp> input);
  ~SectionOp() override;

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override;
  Pulled Skip(uint64_t count, uint64_t* skipped) override;
  void Restart(uint64_t epoch) override;
  void Save(Position& position) const override;
  absl::Status Restore(Position& position) override;
  // Nobody knows before the values do, unless every element makes as many.
  std::optional<uint64_t> Count() override;
  uint32_t width() const override { return section_->hands_on_rows ? section_->width : 1; }
  absl::Status status() const override;

 private:
  Pulled SkipBatches(uint64_t count, uint64_t* skipped);
  Pulled SkipBlocks(uint64_t count, uint64_t* skipped);
  // The references of element `i` of those that a block gives.
  absl::Span<const RecordRef> Element(const SectionTask& block, size_t i) const;
  // How many of its elements, `wanted` at most, come before the next failure.
  size_t Together(const SectionTask& block, size_t elements, uint64_t wanted) const;
  // Asks for blocks until enough are on their way.
  void Ask();
  // Whether a further block may be asked for.
  bool HasRoom();
  // Counts those that are done, up to the first one that is not, by what they came to.
  void CountDone();
  void Uncount(const SectionTask& task);
  void PushPart();
  // How many rows a task takes at most, by what those before it came to.
  uint64_t PartRows() const;
  void Push(std::unique_ptr<SectionTask> task);
  // Lists the failures in front of the next element; false when there are too many of them.
  bool NoteFailures(const SectionTask& block);
  bool WithinLimits(bool at_end);
  Pulled FailBehindBlock();
  Pulled Fail(absl::Status status);
  std::unique_ptr<SectionTask> NewTask();
  void Retire(std::unique_ptr<SectionTask> task);
  void ReleaseRetired();

  FrontContext& context_;
  const std::shared_ptr<const Section> section_;
  const std::unique_ptr<OrderOp> input_;
  std::deque<std::unique_ptr<SectionTask>> blocks_;  // those that were asked for, or parts of them
  std::unique_ptr<SectionTask> partial_;             // the next one, while it is filled
  std::vector<std::unique_ptr<SectionTask>> idle_;
  std::vector<std::unique_ptr<SectionTask>> retired_;  // wait for their worker
  uint64_t references_ahead_ = 0;                      // of blocks_
  uint64_t done_bytes_ = 0;                            // of the elements of those that are done
  uint64_t waiting_bytes_ = 0;                         // of the records of the others
  uint64_t num_waiting_ = 0;                           // which are so many
  std::optional<uint64_t> expected_bytes_;             // of a block, by those that were done before
  uint64_t bytes_of_row_ = 0;                          // of the one that was counted last
  Pulled input_result_ = Pulled::kSome;                // what the input came to: kEnd or kFailed
  size_t next_ = 0;                                    // element of blocks_.front()
  size_t next_failure_ = 0;                            // the same
  Position looked_at_;             // in front of the block that was looked at last
  bool has_looked_ = false;        // whether there is one; a batch is none
  uint64_t before_ = 0;            // its elements that were in tasks before blocks_.front()
  uint64_t resume_at_ = 0;         // elements of the first block to leave out before the next one
  bool resumed_ = false;           // whether the first block is one that was taken from before
  uint64_t epoch_ = 0;             // the pass
  uint64_t taken_ = 0;             // elements in this pass
  uint64_t skipped_of_block_ = 0;  // elements that the input has left out of a block
  uint64_t skipped_ = 0;           // failures in this pass
  // Those in front of the position that Save() tells: who goes on there meets the others again.
  uint64_t skipped_at_position_ = 0;
  absl::Status status_;
};

}  // namespace penstock
