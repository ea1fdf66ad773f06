#include "server/engine/stage/batch_order.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr int64_t kMaxBatchSize = int64_t{1} << 24;

// The references of a batch that waits for more: whoever pulls has those of whole batches alone.
class PartialBatch {
 public:
  explicit PartialBatch(FrontContext& context) : context_(context) {}

  // To where the batch is filled. Nothing is copied where it is the only one there: a large batch
  // may come in thousands of pieces.
  void MoveTo(RecordList& out) {
    if (out.empty()) {
      out.swap(references_);
      return;
    }
    out.insert(out.end(), references_.begin(), references_.end());
    references_.clear();
  }
  // Takes the last `count` of `out`. REQUIRES: MoveTo() came before.
  void TakeFrom(RecordList& out, size_t count) {
    if (count == out.size()) {
      references_.swap(out);
      return;
    }
    references_.assign(out.end() - count, out.end());
    out.resize(out.size() - count);
  }
  void Drop() {
    context_.store.Release(references_);
    references_.clear();
  }

 private:
  FrontContext& context_;
  RecordList references_;
};

// Groups consecutive elements. An element of its output is the references of one batch. Between two
// of them it has no position of its own, unless the last batch goes on with the pass's beginning:
// then it is the pass and whether that has happened.
class BatchOp final : public ChainedOrderOp {
 public:
  // `marks`: as PlanBuilder::MarkWrapped().
  BatchOp(FrontContext& context, std::unique_ptr<OrderOp> input, uint64_t batch_size,
          Remainder remainder, bool marks)
      : ChainedOrderOp(std::move(input)),
        context_(context),
        batch_size_(batch_size),
        remainder_(remainder),
        marks_(marks),
        partial_(context) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      if (wrapped_ && rows_ == 0) return Pulled::kEnd;
      partial_.MoveTo(out);
      const size_t before = out.size();
      const Pulled result = input().Pull(batch_size_, out, &rows_);
      if (marks_) AddMarks(before, out);
      if (result == Pulled::kFailed) return result;
      if (result == Pulled::kBlocked) {
        partial_.TakeFrom(out, rows_ * width());
        return result;
      }
      if (result == Pulled::kEnd && rows_ > 0 && remainder_ == Remainder::kWrap) {
        // The pass has elements, so that it comes to an end here again at most batch_size times.
        partial_.TakeFrom(out, rows_ * width());
        wrapped_ = true;
        ++times_wrapped_;
        input().Restart(epoch_);
        if (context_.interrupted()) return Pulled::kBlocked;
        continue;
      }
      if (result == Pulled::kEnd && (rows_ == 0 || remainder_ == Remainder::kDrop)) {
        partial_.TakeFrom(out, rows_ * width());
        partial_.Drop();
        rows_ = 0;
        return Pulled::kEnd;
      }
      rows_ = 0;
      ++*pulled;
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    if (wrapped_ && rows_ == 0) return Pulled::kEnd;
    // rows_ counts what is left out of the batches that are still to be skipped.
    partial_.Drop();
    const uint64_t batches = count - *skipped;
    const uint64_t most = UINT64_MAX / batch_size_;
    const uint64_t rows = std::min(batches, most) * batch_size_;
    const Pulled result = input().Skip(rows, &rows_);
    if (result == Pulled::kBlocked) {
      *skipped += rows_ / batch_size_;
      rows_ %= batch_size_;
      return result;
    }
    uint64_t whole = rows_ / batch_size_;
    if (result == Pulled::kEnd && rows_ % batch_size_ != 0 && remainder_ != Remainder::kDrop) {
      ++whole;
      wrapped_ = remainder_ == Remainder::kWrap;
    }
    rows_ = 0;
    *skipped += whole;
    return *skipped == count ? Pulled::kSome : result;
  }

  void Restart(uint64_t epoch) override {
    rows_ = 0;
    partial_.Drop();
    epoch_ = epoch;
    wrapped_ = false;
    times_wrapped_ = 0;
    ChainedOrderOp::Restart(epoch);
  }

  void Save(Position& position) const override {
    if (remainder_ == Remainder::kWrap) {
      position.Add(epoch_);
      position.Add(wrapped_);
    }
    ChainedOrderOp::Save(position);
  }

  absl::Status Restore(Position& position) override {
    if (remainder_ == Remainder::kWrap) {
      epoch_ = position.Take();
      wrapped_ = position.Take() != 0;
    }
    return ChainedOrderOp::Restore(position);
  }

  std::optional<uint64_t> Count() override {
    const std::optional<uint64_t> count = input().Count();
    if (!count || *count == kEndless) return count;
    const bool more = remainder_ != Remainder::kDrop && *count % batch_size_ != 0;
    return *count / batch_size_ + (more ? 1 : 0);
  }
  std::optional<uint64_t> CountRows() override {
    // Batches that are all full are counted.
    const bool full = remainder_ == Remainder::kDrop || remainder_ == Remainder::kWrap;
    return full ? std::nullopt : input().Count();
  }
  uint32_t width() const override { return input().width() + (marks_ ? 1 : 0); }

 private:
  // Behind each of the elements from there on, which move apart.
  void AddMarks(size_t begin, RecordList& out) {
    const uint32_t width = input().width();
    const size_t elements = (out.size() - begin) / width;
    out.resize(out.size() + elements);
    for (size_t i = elements; i-- > 0;) {
      const auto from = out.begin() + begin + i * width;
      const auto to = out.begin() + begin + i * (width + 1);
      std::move_backward(from, from + width, to + width);
      to[width] = {nullptr, times_wrapped_, 0, UINT32_MAX, to[0].epoch};
    }
  }

  FrontContext& context_;
  const uint64_t batch_size_;
  const Remainder remainder_;
  const bool marks_;
  uint64_t rows_ = 0;           // of the batch that is being filled
  PartialBatch partial_;        // what it has, between two calls
  uint64_t epoch_ = 0;          // the pass
  uint64_t times_wrapped_ = 0;  // in this pass, whose last batch is the only one that is filled up
  bool wrapped_ = false;        // whether the pass's elements have begun to come once more
};

// Groups consecutive elements by sizes that come in turns. Its position: whose turn it is, and its
// input's.
class BatchesOp final : public ChainedOrderOp {
 public:
  BatchesOp(FrontContext& context, std::unique_ptr<OrderOp> input, std::vector<uint32_t> sizes,
            bool drops)
      : ChainedOrderOp(std::move(input)),
        context_(context),
        sizes_(std::move(sizes)),
        drops_(drops),
        partial_(context) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      partial_.MoveTo(out);
      const Pulled result = input().Pull(sizes_[turn_], out, &rows_);
      if (result == Pulled::kFailed) return result;
      if (result == Pulled::kBlocked) {
        partial_.TakeFrom(out, rows_ * width());
        return result;
      }
      if (result == Pulled::kEnd && (rows_ == 0 || drops_)) {
        partial_.TakeFrom(out, rows_ * width());
        partial_.Drop();
        rows_ = 0;
        return Pulled::kEnd;
      }
      rows_ = 0;
      turn_ = (turn_ + 1) % sizes_.size();
      ++*pulled;
    }
    return Pulled::kSome;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    return SkipByPulling(*this, context_, count, skipped);
  }
  void Restart(uint64_t epoch) override {
    rows_ = 0;
    partial_.Drop();
    turn_ = 0;
    ChainedOrderOp::Restart(epoch);
  }
  void Save(Position& position) const override {
    position.Add(turn_);
    ChainedOrderOp::Save(position);
  }
  absl::Status Restore(Position& position) override {
    turn_ = position.Take() % sizes_.size();
    return ChainedOrderOp::Restore(position);
  }
  std::optional<uint64_t> Count() override {
    const std::optional<uint64_t> count = input().Count();
    if (!count || *count == kEndless) return count;
    uint64_t cycle = 0;
    for (const uint32_t size : sizes_) cycle += size;
    uint64_t batches = *count / cycle * sizes_.size();
    uint64_t left = *count % cycle;
    for (size_t i = 0; left > 0; ++i) {
      if (left < sizes_[i] && drops_) break;
      left -= std::min<uint64_t>(left, sizes_[i]);
      ++batches;
    }
    return batches;
  }

 private:
  FrontContext& context_;
  const std::vector<uint32_t> sizes_;
  const bool drops_;
  uint64_t rows_ = 0;     // of the batch that is being filled
  PartialBatch partial_;  // what it has, between two calls
  size_t turn_ = 0;
};

const char* NameOf(Remainder remainder) {
  constexpr const char* kNames[] = {"KEEP", "DROP", "PAD", "WRAP"};
  return kNames[static_cast<int>(remainder)];
}

}  // namespace

absl::StatusOr<BatchForm> CheckBatchOptions(const LastBatchOptions& options, PlanBuilder& plan) {
  if (options.batch_size < 1 || options.batch_size > kMaxBatchSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_size: expected 1 to ", kMaxBatchSize, ", found ", options.batch_size));
  }
  if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
  if (absl::Status status = plan.LeaveOutFailures(); !status.ok()) return status;
  BatchForm form;
  if (options.drop_remainder.value_or(false)) form.remainder = Remainder::kDrop;
  if (!options.remainder) return form;
  const int number = *options.remainder;
  if (number < 0 || number > static_cast<int>(Remainder::kWrap))
    return absl::InvalidArgumentError(absl::StrCat("remainder: unknown value ", number));
  form.remainder = static_cast<Remainder>(number);
  if (options.drop_remainder && *options.drop_remainder != (form.remainder == Remainder::kDrop)) {
    return absl::InvalidArgumentError(
        absl::StrCat("remainder and drop_remainder contradict each other: ", NameOf(form.remainder),
                     " and ", *options.drop_remainder ? "true" : "false", "; give one of them"));
  }
  return form;
}

void AddBatch(PlanBuilder& plan, uint32_t rows, BatchForm form) {
  const Remainder remainder = form.remainder;
  const bool marks = remainder == Remainder::kWrap && plan.MarkWrapped();
  plan.SetBatch(rows, std::move(form));
  plan.AddOrder([rows, remainder, marks](FrontContext& context, OrderInputs inputs) {
    return std::make_unique<BatchOp>(context, std::move(inputs[0]), rows, remainder, marks);
  });
}

void AddBatches(PlanBuilder& plan, std::vector<uint32_t> sizes, BatchForm form) {
  const bool drops = form.remainder == Remainder::kDrop;
  const uint32_t largest = *std::max_element(sizes.begin(), sizes.end());
  // Their sizes differ, though none is left over.
  form.remainder = Remainder::kKeep;
  plan.SetBatch(largest, std::move(form));
  plan.AddOrder([sizes = std::move(sizes), drops](FrontContext& context, OrderInputs inputs) {
    return std::make_unique<BatchesOp>(context, std::move(inputs[0]), sizes, drops);
  });
}

}  // namespace penstock
