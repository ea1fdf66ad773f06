#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/row_shape.h"
#include "server/engine/order/grouped_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/keyed_elements.h"
#include "server/engine/tensor/pad_rows.h"
#include "server/engine/tensor/padding_options.h"
#include "server/expr/arguments.h"
#include "server/expr/graph.h"

namespace penstock {
namespace {

size_t BucketOf(int64_t length, const std::vector<int64_t>& boundaries) {
  return std::upper_bound(boundaries.begin(), boundaries.end(), length) - boundaries.begin();
}

// Pads each row by itself to its bucket's boundary - 1, where the form leaves a size to the batch.
class PadToBoundary final : public WorkOp {
 public:
  PadToBoundary(Signature signature, BatchForm form, std::unique_ptr<expr::Program> length,
                std::vector<int64_t> boundaries)
      : signature_(std::move(signature)),
        form_(std::move(form)),
        length_(std::move(length)),
        boundaries_(std::move(boundaries)) {}

  const Signature& output() const override { return signature_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    auto* const lengths = arena.AllocateArray<int64_t>(rows);
    uint8_t* const targets[] = {reinterpret_cast<uint8_t*>(lengths)};
    if (RowStatus status = length_->Run(rows, in, targets, arena); !status.ok()) return status;
    for (int row = 0; row < rows; ++row) {
      if (lengths[row] < boundaries_.back()) continue;
      return {absl::InvalidArgumentError(absl::StrCat(
                  "pad_to_bucket_boundary: expected a length below the last boundary, ",
                  boundaries_.back(), ", found ", lengths[row])),
              row};
    }
    RowStatus first;
    for (size_t i = 0; i < in.size(); ++i) {
      out[i] = in[i];
      if (!HasUnknownAxes(form_.shapes[i])) continue;
      RowStatus status = PadFeature(i, rows, in[i], lengths, &out[i], arena);
      if (!status.ok() && (first.ok() || status.row < first.row)) first = std::move(status);
    }
    return first;
  }

 private:
  RowStatus PadFeature(size_t feature, int rows, const Column& in, const int64_t* lengths,
                       Column* out, Arena& arena) const {
    const TensorType& type = signature_[feature].type;
    const size_t ndim = type.shape.size();
    auto* const values = arena.AllocateArray<RowBytes>(rows);
    auto* const dims = arena.AllocateArray<int64_t>(rows * ndim);
    for (int row = 0; row < rows; ++row) {
      Shape from(type.shape);
      if (in.dims != nullptr) from.assign(in.dims + row * ndim, in.dims + (row + 1) * ndim);
      RowLayout layout{type, form_.shapes[feature], true, form_.values[feature]};
      const int64_t boundary = boundaries_[BucketOf(lengths[row], boundaries_)];
      for (int64_t& size : layout.shape) size = size == kUnknownSize ? boundary - 1 : size;
      std::copy(layout.shape.begin(), layout.shape.end(), dims + row * ndim);
      absl::Status fits = CheckFits(signature_[feature].name, from, layout.shape);
      if (!fits.ok()) return {std::move(fits), row};
      if (!expr::FitsRow(layout.shape)) {
        return {absl::DataLossError(absl::StrCat(
                    "feature \"", signature_[feature].name, "\": padded row larger than limit: ",
                    ShapeToString(layout.shape), " > ", expr::kMaxRowElements, " elements")),
                row};
      }
      const int64_t count = *NumElements(layout.shape);
      if (type.dtype == DType::kString) {
        values[row] = PadStrings({in.row(row), in.row_size(row)}, from, layout, count, arena);
        continue;
      }
      const size_t bytes = count * DTypeSize(type.dtype);
      uint8_t* const to = arena.Allocate(bytes);
      const RowBytes value{in.row(row), in.row_size(row)};
      Column one;
      one.rows = &value;
      one.dims = from.data();
      RowStatus status = PadRows(signature_[feature].name, layout, one, 1, to);
      if (!status.ok()) return {std::move(status.status), row};
      values[row] = {to, bytes};
    }
    *out = Column{};
    out->rows = values;
    out->dims = dims;
    return {};
  }

  // A row of strings is the sizes of all of them, and then their bytes (base/column.h).
  static RowBytes PadStrings(RowBytes row, const Shape& from, const RowLayout& layout,
                             int64_t count, Arena& arena) {
    const int64_t given = NumElements(from).value_or(0);
    const auto* const sizes = row.data;
    std::vector<RowBytes> strings(
        count, {reinterpret_cast<const uint8_t*>(layout.padding.data()), layout.padding.size()});
    std::vector<RowBytes> own(given);
    const uint8_t* bytes = row.data + given * sizeof(uint32_t);
    for (int64_t i = 0; i < given; ++i) {
      uint32_t size = 0;
      std::memcpy(&size, sizes + i * sizeof(size), sizeof(size));
      own[i] = {bytes, size};
      bytes += size;
    }
    VisitRuns(from, layout.shape, [&](size_t at, size_t to, size_t run) {
      std::copy_n(own.begin() + at, run, strings.begin() + to);
    });
    size_t total = count * sizeof(uint32_t);
    for (const RowBytes& string : strings) total += string.size;
    uint8_t* const joined = arena.Allocate(total);
    uint8_t* end = joined + count * sizeof(uint32_t);
    for (int64_t i = 0; i < count; ++i) {
      const auto size = static_cast<uint32_t>(strings[i].size);
      std::memcpy(joined + i * sizeof(size), &size, sizeof(size));
      if (size > 0) std::memcpy(end, strings[i].data, size);
      end += size;
    }
    return {joined, total};
  }

  const Signature signature_;
  const BatchForm form_;
  const std::unique_ptr<expr::Program> length_;
  const std::vector<int64_t> boundaries_;
};

absl::Status CheckBuckets(const v1::BucketBySequenceLength& options) {
  const auto& boundaries = options.bucket_boundary();
  if (options.bucket_batch_size_size() != boundaries.size() + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("bucket_batch_size: expected one more than boundaries, ",
                     boundaries.size() + 1, ", found ", options.bucket_batch_size_size()));
  }
  for (int i = 1; i < boundaries.size(); ++i) {
    if (boundaries[i - 1] < boundaries[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("bucket_boundary: expected rising numbers, found ", boundaries[i - 1],
                     " before ", boundaries[i]));
  }
  for (const int64_t boundary : boundaries) {
    // What rows are padded to is one less.
    const bool is_size = boundary >= 1 && boundary <= expr::kMaxRowElements;
    if (is_size || !options.pad_to_bucket_boundary()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("bucket_boundary: expected 1 to ", expr::kMaxRowElements,
                     " with pad_to_bucket_boundary, found ", boundary));
  }
  for (const int64_t size : options.bucket_batch_size()) {
    if (size >= 1 && size <= int64_t{1} << 24) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("bucket_batch_size: expected 1 to ", int64_t{1} << 24, ", found ", size));
  }
  if (options.pad_to_bucket_boundary() && (boundaries.empty() || options.no_padding())) {
    return absl::InvalidArgumentError(
        absl::StrCat("pad_to_bucket_boundary: expected ",
                     boundaries.empty() ? "a boundary, found none" : "no no_padding, found it"));
  }
  return absl::OkStatus();
}

const OpRegistration<v1::BucketBySequenceLength> kBucketBySequenceLength(
    "bucket_by_sequence_length",
    {.expressions = {v1::BucketBySequenceLength::kLetFieldNumber,
                     v1::BucketBySequenceLength::kElementLengthFieldNumber}},
    [](const v1::BucketBySequenceLength& options, PlanBuilder& plan) -> absl::Status {
      if (absl::Status status = CheckBuckets(options); !status.ok()) return status;
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      absl::StatusOr<expr::MapSource> source =
          ReadMapSource(options.constant(), options.let(), plan);
      if (!source.ok()) return source.status();
      BatchForm form;
      if (!options.no_padding()) {
        absl::Status status =
            ReadPadding(options.padded_shape(), options.padding_value(), plan.signature(), &form);
        if (!status.ok()) return status;
      }
      const std::vector<int64_t> boundaries(options.bucket_boundary().begin(),
                                            options.bucket_boundary().end());
      std::unique_ptr<WorkOp> pad;
      if (options.pad_to_bucket_boundary()) {
        absl::StatusOr<std::unique_ptr<expr::Program>> length =
            CompileInteger(plan.signature(), *source, "element_length", options.element_length());
        if (!length.ok()) return length.status();
        pad =
            std::make_unique<PadToBoundary>(plan.signature(), form, *std::move(length), boundaries);
      }
      absl::Status status =
          AddKey(*source, "element_length", options.element_length(), plan, std::move(pad));
      if (!status.ok()) return status;
      Grouping grouping;
      grouping.key_of = [boundaries](int64_t length) {
        return static_cast<int64_t>(BucketOf(length, boundaries));
      };
      const std::vector<int64_t> sizes(options.bucket_batch_size().begin(),
                                       options.bucket_batch_size().end());
      grouping.window_size = [sizes](int64_t bucket) {
        return absl::StatusOr<uint64_t>(sizes[bucket]);
      };
      grouping.drop_remainder = options.drop_remainder();
      plan.SetBatch(static_cast<uint32_t>(*std::max_element(sizes.begin(), sizes.end())),
                    std::move(form));
      plan.AddOrder(
          [grouping](FrontContext& context, OrderInputs inputs) {
            return BatchesOfGroups(context, grouping, std::move(inputs[0]));
          },
          CursorClass::kReplayData);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
