#include "server/engine/stage/unbatch_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/row_shape.h"
#include "server/engine/tensor/batch_form.h"
#include "server/engine/tensor/padding_options.h"

namespace penstock {
namespace {

// Of one element: as many as a record has bytes. Rows of nothing could be any number.
constexpr int64_t kRowsMax = int64_t{1} << 28;

// The elements of batches as they were before they were joined: their references are still side by
// side. The position is that of the input in front of a batch, and how many of its elements have
// been taken.
class UnjoinOp final : public ChainedOrderOp {
 public:
  // `full_rows`: the elements of every batch, where all have as many.
  UnjoinOp(FrontContext& context, std::unique_ptr<OrderOp> input, std::optional<uint32_t> full_rows)
      : ChainedOrderOp(std::move(input)), context_(context), full_rows_(full_rows) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      if (next_ == rows()) {
        const Pulled result = NextBatch();
        if (result != Pulled::kSome) return result;
        // A batch that is shorter than the cursor said would be one of other files.
        next_ = std::min<uint64_t>(std::exchange(resume_at_, 0), rows());
        context_.store.Release(absl::MakeConstSpan(batch_).first(next_ * width()));
        continue;
      }
      const uint64_t taken = std::min(count - *pulled, rows() - next_);
      out.insert(out.end(), batch_.begin() + next_ * width(),
                 batch_.begin() + (next_ + taken) * width());
      next_ += taken;
      *pulled += taken;
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    return SkipByPulling(*this, context_, count, skipped);
  }

  void Restart(uint64_t epoch) override {
    Drop();
    resume_at_ = 0;
    ChainedOrderOp::Restart(epoch);
  }

  void Save(Position& position) const override {
    const bool within = next_ < rows();
    position.Add(within ? next_ : resume_at_);
    if (!within) return ChainedOrderOp::Save(position);
    for (const uint64_t counter : start_.counters()) position.Add(counter);
  }

  absl::Status Restore(Position& position) override {
    Drop();
    resume_at_ = position.Take();
    return ChainedOrderOp::Restore(position);
  }

  std::optional<uint64_t> Count() override {
    if (!full_rows_) return input().CountRows();
    const std::optional<uint64_t> batches = input().Count();
    if (!batches || *batches == kEndless) return batches;
    uint64_t product = 0;
    return __builtin_mul_overflow(*batches, *full_rows_, &product) ? kEndless : product;
  }

 private:
  uint64_t rows() const { return complete_ ? batch_.size() / width() : 0; }

  Pulled NextBatch() {
    if (complete_ || !asked_) {
      batch_.clear();
      next_ = 0;
      complete_ = false;
      asked_ = true;
      start_.Clear();
      input().Save(start_);
    }
    uint64_t pulled = 0;
    const Pulled result = input().Pull(1, batch_, &pulled);
    complete_ = result == Pulled::kSome;
    if (result == Pulled::kEnd) asked_ = false;
    return result;
  }

  void Drop() {
    context_.store.Release(absl::MakeConstSpan(batch_).subspan(next_ * width()));
    batch_.clear();
    next_ = 0;
    complete_ = asked_ = false;
  }

  FrontContext& context_;
  const std::optional<uint32_t> full_rows_;
  RecordList batch_;
  Position start_;         // in front of it
  bool asked_ = false;     // a pull has begun
  bool complete_ = false;  // and brought a whole batch
  uint64_t next_ = 0;      // its first element that is not taken
  uint64_t resume_at_ = 0;
};

// Rows of the first axis.
class UnbatchOp final : public SplitOp {
 public:
  UnbatchOp(Signature input, Signature output, std::optional<uint32_t> block_rows)
      : input_(std::move(input)), output_(std::move(output)), block_rows_(block_rows) {}

  const Signature& output() const override { return output_; }
  std::optional<uint32_t> block_rows() const override { return block_rows_; }
  bool makes_rows() const override { return true; }

  std::optional<uint64_t> elements_of_each() const override {
    for (const Feature& feature : input_) {
      if (feature.type.shape[0] != kUnknownSize) return feature.type.shape[0];
    }
    return std::nullopt;
  }

  RowStatus Run(int rows, absl::Span<const Column> in, Split* split, absl::Span<Column> out,
                Arena& arena) const override {
    size_t total = 0;
    for (int row = 0; row < rows; ++row) {
      const int64_t count = Length(0, in[0], row);
      for (size_t i = 1; i < in.size(); ++i) {
        if (Length(i, in[i], row) == count) continue;
        return {absl::DataLossError(absl::StrCat(
                    "expected first axes of one size, found \"", input_[0].name, "\" with ", count,
                    " and \"", input_[i].name, "\" with ", Length(i, in[i], row))),
                row};
      }
      if (count > kRowsMax) {
        return {absl::DataLossError(absl::StrCat("expected first axes of at most ", kRowsMax,
                                                 ", found \"", input_[0].name, "\" with ", count)),
                row};
      }
      split->counts[row] = static_cast<uint32_t>(count);
      total += count;
    }
    for (size_t i = 0; i < in.size(); ++i) out[i] = Rows(i, in[i], *split, total, arena);
    return {};
  }

 private:
  int64_t Length(size_t feature, const Column& column, int row) const {
    const Shape& shape = input_[feature].type.shape;
    return column.dims != nullptr ? column.dims[row * shape.size()] : shape[0];
  }

  Column Rows(size_t feature, const Column& column, const Split& split, size_t total,
              Arena& arena) const {
    const TensorType& type = output_[feature].type;
    // The rows of one element are side by side already.
    if (split.counts.size() == 1 && total > 0 && NumBytes(type)) {
      Column result;
      result.data = const_cast<uint8_t*>(column.row(0));
      result.row_bytes = column.row_size(0) / total;
      return result;
    }
    const size_t ndim = type.shape.size();
    auto* values = arena.AllocateArray<RowBytes>(total);
    const bool unknown =
        std::find(type.shape.begin(), type.shape.end(), kUnknownSize) != type.shape.end();
    auto* dims = unknown ? arena.AllocateArray<int64_t>(total * ndim) : nullptr;
    size_t next = 0;
    for (size_t row = 0; row < split.counts.size(); ++row) {
      const uint32_t count = split.counts[row];
      if (count == 0) continue;
      if (unknown) {
        for (uint32_t i = 0; i < count; ++i)
          std::copy_n(column.dims + row * (ndim + 1) + 1, ndim, dims + (next + i) * ndim);
      }
      if (type.dtype == DType::kString) {
        SplitStrings(column.row(row), column.row_size(row), count, values + next, arena, ndim > 0);
      } else {
        const size_t bytes = column.row_size(row) / count;
        for (uint32_t i = 0; i < count; ++i)
          values[next + i] = {column.row(row) + i * bytes, bytes};
      }
      next += count;
    }
    Column result;
    result.rows = values;
    result.dims = dims;
    return result;
  }

  // A row of strings is the sizes of all of them, and then their bytes (base/column.h).
  static void SplitStrings(const uint8_t* row, size_t row_bytes, uint32_t count, RowBytes* values,
                           Arena& arena, bool nested) {
    const auto size_at = [&](size_t string) {
      uint32_t size = 0;
      std::memcpy(&size, row + string * sizeof(size), sizeof(size));
      return size;
    };
    // How many strings there are follows from what their sizes leave of the row.
    size_t strings = count;
    if (nested) {
      strings = 0;
      for (size_t bytes = 0; bytes < row_bytes; ++strings)
        bytes += sizeof(uint32_t) + size_at(strings);
    }
    const size_t each = strings / count;
    const uint8_t* bytes = row + strings * sizeof(uint32_t);
    for (uint32_t i = 0; i < count; ++i) {
      if (!nested) {
        values[i] = {bytes, size_at(i)};
        bytes += size_at(i);
        continue;
      }
      size_t total = 0;
      for (size_t s = 0; s < each; ++s) total += size_at(i * each + s);
      uint8_t* const joined = arena.Allocate(each * sizeof(uint32_t) + total);
      std::memcpy(joined, row + i * each * sizeof(uint32_t), each * sizeof(uint32_t));
      std::memcpy(joined + each * sizeof(uint32_t), bytes, total);
      values[i] = {joined, each * sizeof(uint32_t) + total};
      bytes += total;
    }
  }

  const Signature input_;
  const Signature output_;
  const std::optional<uint32_t> block_rows_;
};

bool HasRows(const Feature& feature) {
  return !feature.type.shape.empty() && feature.type.form == RowForm::kPlain;
}

// Whether batches that the dataset is of may fail by the shapes of their rows, which only the data
// tells.
bool RowsMayDiffer(const PlanBuilder& plan) {
  if (plan.batch_form().kind != BatchForm::Kind::kPlain) return false;
  bool told_by_data = false;
  for (const Feature& feature : plan.signature()) {
    if (feature.type.form != RowForm::kPlain) return false;
    told_by_data |= HasUnknownAxes(feature.type.shape);
  }
  return told_by_data;
}

}  // namespace

absl::Status AddUnbatch(PlanBuilder& plan, std::optional<uint32_t> block_rows) {
  // Padding is no element's own, and rows that make no batch give none back: such batches are made
  // first.
  const bool may_fail = plan.batched() && RowsMayDiffer(plan);
  if (may_fail) plan.RaiseMeaning({2, "a batch whose rows differ in shape gives no elements"});
  if (plan.batched() && !plan.PadsRows() && !may_fail) {
    plan.AddOrder([full_rows = plan.full_batch_rows()](FrontContext& context, OrderInputs inputs) {
      return std::make_unique<UnjoinOp>(context, std::move(inputs[0]), full_rows);
    });
    plan.ClearBatch();
    return absl::OkStatus();
  }
  if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
  for (const Feature& feature : plan.signature()) {
    if (HasRows(feature)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("expected dense features with at least one axis, found \"", feature.name,
                     "\" ", TypeToString(feature.type), HowToBeDense(feature.type)));
  }
  plan.EndSection(RowsOf(plan.signature(), block_rows), plan.structure());
  return absl::OkStatus();
}

std::unique_ptr<SplitOp> RowsOf(const Signature& signature, std::optional<uint32_t> block_rows) {
  if (!std::all_of(signature.begin(), signature.end(), HasRows)) return nullptr;
  Signature output = signature;
  for (Feature& feature : output) feature.type.shape.erase(feature.type.shape.begin());
  return std::make_unique<UnbatchOp>(signature, std::move(output), block_rows);
}

}  // namespace penstock
