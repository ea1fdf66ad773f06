#include "server/engine/section/section_op.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/read/row_block.h"
#include "server/engine/section/sections_ahead.h"

namespace penstock {

SectionOp::SectionOp(FrontContext& context, std::shared_ptr<const Section> section,
                     std::unique_ptr<OrderOp> input)
    : context_(context), section_(std::move(section)), input_(std::move(input)) {
  context_.ahead.Join();
}

SectionOp::~SectionOp() { context_.ahead.Leave(); }

Pulled SectionOp::Pull(uint64_t count, RecordList& out, uint64_t* pulled) {
  if (!status_.ok()) return Pulled::kFailed;
  while (*pulled < count) {
    Ask();
    if (blocks_.empty()) {
      if (input_result_ == Pulled::kEnd) {
        if (resumed_ && before_ < resume_at_) return FailBehindBlock();
        if (!WithinLimits(/*at_end=*/true)) return Pulled::kFailed;
      }
      return input_result_ == Pulled::kSome ? Pulled::kBlocked : input_result_;
    }
    SectionTask& block = *blocks_.front();
    if (!block.done.load(std::memory_order_acquire)) return Pulled::kBlocked;  // SYNC section-done
    const bool is_last = block.ends || !block.error.ok() || block.input_failed;
    if (section_->batch == nullptr && block.rows_before == 0 && next_ == 0) {
      looked_at_ = block.start;
      has_looked_ = true;
      before_ = 0;
      skipped_at_position_ = skipped_;
    }
    const size_t elements = section_->NumElements(block.elements);
    if (resumed_) {
      // What was taken before it was counted then, as were the failures on the way.
      const uint64_t taken = std::min<uint64_t>(resume_at_ - before_, elements);
      for (; next_ < taken; ++next_) context_.store.Release(Element(block, next_));
      while (next_failure_ < block.failures.size() &&
             before_ + block.failures[next_failure_].before < resume_at_)
        ++next_failure_;
      resumed_ = before_ + taken < resume_at_;
      if (resumed_ && (is_last || block.rows_before + block.rows == section_->block_rows)) {
        before_ += taken;
        return FailBehindBlock();
      }
    }
    while (*pulled < count) {
      if (!NoteFailures(block)) return Pulled::kFailed;
      if (next_ == elements) break;
      const size_t taken = Together(block, elements, count - *pulled);
      const absl::Span<const RecordRef> all = block.elements;
      const absl::Span<const RecordRef> some =
          section_->hands_on_rows ? all : all.subspan(next_, taken);
      out.insert(out.end(), some.begin(), some.end());
      next_ += taken;
      *pulled += taken;
      taken_ += taken;
      skipped_at_position_ = skipped_;
    }
    // Failures behind the last element are noted when something is asked for behind them.
    if (next_ < elements || next_failure_ < block.failures.size()) break;
    // Whoever has got all that was asked for is told of an end or an error the next time.
    if (*pulled == count && is_last) break;
    // A block behind which nothing comes stays: it is the position of the end.
    if (!block.error.ok()) return Fail(block.error);
    if (block.ends) return WithinLimits(/*at_end=*/true) ? Pulled::kEnd : Pulled::kFailed;
    if (block.input_failed) return Fail(input_->status());
    block.elements.clear();
    Retire(std::move(blocks_.front()));
    blocks_.pop_front();
    if (has_looked_) before_ += next_;
    if (!has_looked_) skipped_at_position_ = skipped_;
    next_ = next_failure_ = 0;
  }
  return Pulled::kSome;
}

size_t SectionOp::Together(const SectionTask& block, size_t elements, uint64_t wanted) const {
  size_t end = std::min<uint64_t>(elements, next_ + wanted);
  if (next_failure_ < block.failures.size())
    end = std::min(end, block.failures[next_failure_].before);
  return end - next_;
}

absl::Span<const RecordRef> SectionOp::Element(const SectionTask& block, size_t i) const {
  const absl::Span<const RecordRef> all = block.elements;
  return section_->hands_on_rows ? all : all.subspan(i, 1);
}

Pulled SectionOp::Skip(uint64_t count, uint64_t* skipped) {
  if (!section_->one_to_one() || resumed_ || !status_.ok())
    return SkipByPulling(*this, context_, count, skipped);
  return section_->batch != nullptr ? SkipBatches(count, skipped) : SkipBlocks(count, skipped);
}

// What has been asked for is left out as a whole, and the rest by the input.
Pulled SectionOp::SkipBatches(uint64_t count, uint64_t* skipped) {
  for (; !blocks_.empty() && *skipped < count; ++*skipped) {
    Retire(std::move(blocks_.front()));
    blocks_.pop_front();
    next_ = 0;
    ++taken_;
  }
  if (*skipped == count) return Pulled::kSome;
  // Behind its end the input is not asked again.
  if (input_result_ != Pulled::kSome) return input_result_;
  if (partial_ != nullptr) {
    const Pulled result = input_->Pull(1, partial_->records, &partial_->rows);
    if (result == Pulled::kBlocked) return result;
    if (result != Pulled::kSome) input_result_ = result;
    *skipped += partial_->rows;
    taken_ += partial_->rows;
    context_.store.Release(partial_->records);
    partial_->records.clear();
    idle_.push_back(std::move(partial_));
  }
  if (input_result_ != Pulled::kSome) return input_result_;
  const uint64_t before = *skipped;
  const Pulled result = input_->Skip(count, skipped);
  taken_ += *skipped - before;
  if (result == Pulled::kEnd || result == Pulled::kFailed) input_result_ = result;
  return result;
}

// Nothing has been asked for: whole blocks are left out by the input, so that the bounds of those
// behind them stay where they are.
Pulled SectionOp::SkipBlocks(uint64_t count, uint64_t* skipped) {
  const uint64_t whole =
      (skipped_of_block_ + count - *skipped) / section_->block_rows * section_->block_rows;
  if (blocks_.empty() && partial_ == nullptr && input_result_ == Pulled::kSome &&
      whole > skipped_of_block_) {
    const uint64_t before = *skipped;
    const Pulled result = input_->Skip(before + whole - skipped_of_block_, skipped);
    taken_ += *skipped - before;
    if (*skipped > before) {
      // The block that was looked at last is no position any more.
      has_looked_ = false;
      before_ = 0;
      skipped_at_position_ = skipped_;
    }
    skipped_of_block_ = (skipped_of_block_ + *skipped - before) % section_->block_rows;
    if (result == Pulled::kEnd || result == Pulled::kFailed) input_result_ = result;
    if (result != Pulled::kSome) return result;
  }
  return SkipByPulling(*this, context_, count, skipped);
}

std::optional<uint64_t> SectionOp::Count() {
  const std::optional<uint64_t> each = section_->elements_of_each();
  const std::optional<uint64_t> count = each ? input_->Count() : std::nullopt;
  if (!count || each == 1) return count;
  if (*count == 0) return 0;
  // Of nothing without end neither an element nor the end comes.
  if (*count == kEndless) return each > 0 ? count : std::nullopt;
  uint64_t product = 0;
  return __builtin_mul_overflow(*count, *each, &product) ? kEndless : product;
}

void SectionOp::Restart(uint64_t epoch) {
  epoch_ = epoch;
  if (!blocks_.empty()) {
    SectionTask& front = *blocks_.front();
    if (front.done.load(std::memory_order_acquire)) {
      const size_t taken = section_->hands_on_rows ? next_ * front.elements.size() : next_;
      front.elements.erase(front.elements.begin(), front.elements.begin() + taken);
    }
  }
  while (!blocks_.empty()) {
    Retire(std::move(blocks_.front()));
    blocks_.pop_front();
  }
  ReleaseRetired();
  if (partial_ != nullptr) {
    context_.store.Release(partial_->records);
    partial_->records.clear();
    idle_.push_back(std::move(partial_));
  }
  input_result_ = Pulled::kSome;
  next_ = next_failure_ = 0;
  has_looked_ = false;
  before_ = resume_at_ = 0;
  resumed_ = false;
  taken_ = skipped_ = skipped_at_position_ = skipped_of_block_ = 0;
  status_ = absl::OkStatus();
  input_->Restart(epoch);
}

void SectionOp::Save(Position& position) const {
  position.Add(resumed_ ? resume_at_ : before_ + next_);
  position.Add(taken_);
  position.Add(skipped_at_position_);
  // Whether more comes of the block whose element was taken last is known only when all of it has
  // been looked at: it stays the position until another one is. What comes of a batch is one
  // element, behind which the next one begins.
  const SectionTask* first = !blocks_.empty() ? blocks_.front().get() : partial_.get();
  if (!has_looked_ && first == nullptr) return input_->Save(position);
  for (const uint64_t counter : (has_looked_ ? looked_at_ : first->start).counters())
    position.Add(counter);
}

absl::Status SectionOp::Restore(Position& position) {
  resume_at_ = position.Take();
  taken_ = position.Take();
  skipped_ = skipped_at_position_ = position.Take();
  resumed_ = true;
  return input_->Restore(position);
}

absl::Status SectionOp::status() const { return status_.ok() ? input_->status() : status_; }

void SectionOp::Ask() {
  while (input_result_ == Pulled::kSome && HasRoom() && !context_.interrupted()) {
    if (partial_ == nullptr) {
      partial_ = NewTask();
      input_->Save(partial_->start);
    }
    const size_t before = partial_->records.size();
    const uint64_t rest = section_->block_rows - partial_->rows_before;
    const uint64_t wanted = std::min(rest, std::max(PartRows(), partial_->rows + 1));
    const Pulled result = input_->Pull(wanted, partial_->records, &partial_->rows);
    // What its work draws is drawn by the pass, which `repeat` behind it tells too late.
    for (RecordRef& record : absl::MakeSpan(partial_->records).subspan(before))
      record.epoch = LaterPass(record, context_.PassOf(epoch_));
    if (result == Pulled::kBlocked) {
      if (blocks_.empty() && partial_->rows > 0) PushPart();
      return;
    }
    if (result != Pulled::kSome) input_result_ = result;
    if (partial_->rows == 0) {
      // It stays as the position of the end, whoever asks before or behind. A batch that failed
      // leaves what it had.
      context_.store.Release(partial_->records);
      partial_->records.clear();
      return;
    }
    partial_->input_failed = result == Pulled::kFailed;
    if (result == Pulled::kSome && partial_->rows < rest) {
      PushPart();
    } else {
      Push(std::move(partial_));
    }
  }
}

bool SectionOp::HasRoom() {
  if (blocks_.empty()) return true;
  if (blocks_.size() >= kBlocksAhead || references_ahead_ >= kReferencesAhead) return false;
  CountDone();
  if (blocks_.size() < context_.ahead.blocks()) return true;
  if (!expected_bytes_) return false;
  const uint64_t waiting = std::max(waiting_bytes_, num_waiting_ * *expected_bytes_);
  return done_bytes_ + waiting + *expected_bytes_ < context_.ahead.bytes();
}

void SectionOp::CountDone() {
  for (const std::unique_ptr<SectionTask>& block : blocks_) {
    if (block->counted) continue;
    if (!block->done.load(std::memory_order_acquire)) return;  // SYNC section-done
    Uncount(*block);
    block->counted = true;
    block->bytes = block->element_bytes;
    done_bytes_ += block->bytes;
    if (block->rows > 0) bytes_of_row_ = block->bytes / block->rows;
    // The largest ones count for longest.
    const uint64_t before = expected_bytes_.value_or(0);
    expected_bytes_ = std::max(block->bytes, before - before / 8);
  }
}

void SectionOp::Uncount(const SectionTask& task) {
  if (task.counted) {
    done_bytes_ -= task.bytes;
  } else {
    waiting_bytes_ -= task.bytes;
    --num_waiting_;
  }
}

void SectionOp::Push(std::unique_ptr<SectionTask> task) {
  task->references = task->records.size();
  references_ahead_ += task->references;
  task->bytes = HeldBytes(task->records);
  waiting_bytes_ += task->bytes;
  ++num_waiting_;
  context_.sections.Push(task.get());
  blocks_.push_back(std::move(task));
}

uint64_t SectionOp::PartRows() const {
  return std::max<uint64_t>(1, kPartBytes / std::max<uint64_t>(bytes_of_row_, 1));
}

// Whoever waits is not kept waiting for the rest of the block.
void SectionOp::PushPart() {
  std::unique_ptr<SectionTask> rest = NewTask();
  rest->start = partial_->start;
  rest->rows_before = partial_->rows_before + partial_->rows;
  Push(std::exchange(partial_, std::move(rest)));
}

bool SectionOp::NoteFailures(const SectionTask& block) {
  for (; next_failure_ < block.failures.size(); ++next_failure_) {
    const SectionTask::Failure& failure = block.failures[next_failure_];
    if (failure.before > next_) break;
    ++skipped_;
    context_.damage.Add(failure.place);
    if (!WithinLimits(/*at_end=*/false)) return false;
  }
  return true;
}

bool SectionOp::WithinLimits(bool at_end) {
  if (!section_->ignored) return true;
  absl::Status status = section_->ignored->Check(skipped_, taken_, at_end);
  if (status.ok()) return true;
  Fail(std::move(status));
  return false;
}

Pulled SectionOp::FailBehindBlock() {
  return Fail(absl::FailedPreconditionError(
      absl::StrCat("the cursor is after element ", resume_at_, " of a block that has ", before_)));
}

Pulled SectionOp::Fail(absl::Status status) {
  status_ = std::move(status);
  return Pulled::kFailed;
}

std::unique_ptr<SectionTask> SectionOp::NewTask() {
  std::unique_ptr<SectionTask> task;
  if (idle_.empty()) {
    task = std::make_unique<SectionTask>();
  } else {
    task = std::move(idle_.back());
    idle_.pop_back();
  }
  task->section = section_.get();
  task->start.Clear();
  task->rows_before = task->rows = 0;
  task->elements.clear();
  task->failures.clear();
  task->element_bytes = 0;
  task->counted = false;
  task->error = absl::OkStatus();
  task->ends = false;
  task->input_failed = false;
  task->done.store(false, std::memory_order_relaxed);
  return task;
}

// Its elements are given back when its worker is done with it.
void SectionOp::Retire(std::unique_ptr<SectionTask> task) {
  references_ahead_ -= task->references;
  Uncount(*task);
  retired_.push_back(std::move(task));
  ReleaseRetired();
}

void SectionOp::ReleaseRetired() {
  for (std::unique_ptr<SectionTask>& old : retired_) {
    if (!old->done.load(std::memory_order_acquire)) continue;  // SYNC section-done
    context_.store.Release(old->elements);
    old->elements.clear();
    idle_.push_back(std::move(old));
  }
  std::erase(retired_, nullptr);
}

}  // namespace penstock
