#include "server/engine/compute/own_rows.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/in_pieces.h"
#include "base/packed_row.h"
#include "base/row_shape.h"

namespace penstock {
namespace {

// Of a value beside its bytes, as StopLook counts it.
constexpr uint64_t kPickWork = 16;

// The bytes of `count` strings, whose sizes stand one behind the other.
size_t StringBytes(const uint8_t* sizes, size_t count) {
  size_t bytes = 0;
  InPieces(count, [&](size_t first, size_t some) {
    for (size_t i = first; i < first + some; ++i) {
      uint32_t size = 0;
      std::memcpy(&size, sizes + i * sizeof(size), sizeof(size));
      bytes += size;
    }
  });
  return bytes;
}

// Values [first, first + count) of them.
PackedValues Part(const PackedValues& values, size_t first, size_t count) {
  PackedValues part;
  part.count = count;
  if (values.string_sizes != nullptr) {
    part.string_sizes = values.string_sizes + first * sizeof(uint32_t);
    part.bytes = values.bytes + StringBytes(values.string_sizes, first);
    part.size = StringBytes(part.string_sizes, count);
  } else if (values.count > 0) {
    const size_t each = values.size / values.count;
    part.bytes = values.bytes + first * each;
    part.size = count * each;
  }
  return part;
}

// A row of strings is the sizes of all of them, and then their bytes (base/column.h).
RowBytes OwnStrings(const RowBytes& row, size_t strings, size_t first, size_t count, Arena& arena) {
  const PackedValues own = Part(ReadDenseRow(DType::kString, strings, row), first, count);
  const size_t sizes_bytes = count * sizeof(uint32_t);
  uint8_t* const to = arena.Allocate(sizes_bytes + own.size);
  CopyInPieces(to, own.string_sizes, sizes_bytes);
  CopyInPieces(to + sizes_bytes, own.bytes, own.size);
  return {to, sizes_bytes + own.size};
}

RowBytes OwnRagged(const RaggedRow& row, RowSpan own, Arena& arena) {
  std::vector<std::vector<int64_t>> splits;
  size_t first = own.first, count = own.count;
  for (const absl::Span<const int64_t> axis : row.splits) {
    const int64_t begin = axis[first], end = axis[first + count];
    std::vector<int64_t>& part = splits.emplace_back();
    for (size_t i = first; i <= first + count; ++i) part.push_back(axis[i] - begin);
    first = static_cast<size_t>(begin);
    count = static_cast<size_t>(end - begin);
  }
  // Behind the ragged axes each item may have axes of its own.
  const auto items = static_cast<size_t>(row.splits.back().back());
  const size_t each = items > 0 ? row.values.count / items : 0;
  return PackRagged(splits, Part(row.values, first * each, count * each), arena);
}

// The values with these numbers, side by side.
PackedValues Pick(const PackedValues& values, const std::vector<size_t>& picks, Arena& arena) {
  PackedValues picked;
  picked.count = picks.size();
  const bool is_string = values.string_sizes != nullptr;
  const size_t each = is_string || values.count == 0 ? 0 : values.size / values.count;
  std::vector<size_t> offsets{0};
  InPieces(values.count, [&](size_t first, size_t some) {
    for (size_t i = first; i < first + some; ++i)
      offsets.push_back(offsets.back() + (is_string ? values.string_size(i) : each));
  });
  for (const size_t pick : picks) picked.size += offsets[pick + 1] - offsets[pick];
  uint8_t* to = arena.Allocate(picked.size);
  uint8_t* sizes = is_string ? arena.Allocate(picks.size() * sizeof(uint32_t)) : nullptr;
  picked.bytes = to;
  picked.string_sizes = sizes;
  StopLook look;
  for (const size_t pick : picks) {
    const auto size = static_cast<uint32_t>(offsets[pick + 1] - offsets[pick]);
    look.Did(size + kPickWork);
    if (size > 0) std::memcpy(to, values.bytes + offsets[pick], size);
    to += size;
    if (!is_string) continue;
    std::memcpy(sizes, &size, sizeof(size));
    sizes += sizeof(size);
  }
  return picked;
}

// In any order of the indices.
RowBytes OwnSparse(const SparseRow& row, RowSpan own, Arena& arena) {
  std::vector<int64_t> sizes(row.sizes.begin(), row.sizes.end());
  sizes[0] = own.count;
  const size_t axes = sizes.size();
  std::vector<int64_t> indices;
  std::vector<size_t> picks;
  StopLook look;
  for (size_t i = 0; i < row.values.count; ++i) {
    look.Did(axes);
    const absl::Span<const int64_t> place = row.indices.subspan(i * axes, axes);
    if (!own.Has(static_cast<uint64_t>(place[0]))) continue;
    picks.push_back(i);
    indices.insert(indices.end(), place.begin(), place.end());
    indices[indices.size() - axes] -= own.first;
  }
  return PackSparse(sizes, indices, Pick(row.values, picks, arena), arena);
}

class OwnRows final : public WorkOp {
 public:
  OwnRows(Signature input, int64_t batch_rows, World world)
      : input_(std::move(input)), output_(input_), world_(world) {
    for (Feature& feature : output_) {
      divided_.push_back(IsDivided(feature.type, batch_rows));
      if (!divided_.back() || feature.type.shape[0] == kUnknownSize) continue;
      feature.type.shape[0] = world.RowsOf(static_cast<uint32_t>(feature.type.shape[0])).count;
    }
  }

  const Signature& output() const override { return output_; }
  std::string Describe() const override {
    return absl::StrCat("the rows of host ", world_.host, " of ", world_.hosts, "\n");
  }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    for (size_t i = 0; i < in.size(); ++i) {
      if (const RowStatus status = Divide(i, rows, in[i], &out[i], arena); !status.ok())
        return status;
    }
    return {};
  }

 private:
  RowStatus Divide(size_t feature, int rows, const Column& in, Column* out, Arena& arena) const {
    const TensorType& type = input_[feature].type;
    auto* const own = arena.AllocateArray<RowBytes>(rows);
    const bool has_dims = in.dims != nullptr;
    const size_t axes = type.shape.size();
    auto* const dims = has_dims ? arena.AllocateArray<int64_t>(axes * rows) : nullptr;
    if (has_dims) std::copy_n(in.dims, axes * rows, dims);
    for (int row = 0; row < rows; ++row) {
      const RowBytes whole{in.row(row), in.row_size(row)};
      own[row] = whole;
      if (!divided_[feature]) continue;
      int64_t count = 0;
      if (!Own(type, in, row, whole, &own[row], &count, arena)) {
        return {absl::DataLossError(absl::StrCat("\"", input_[feature].name, "\" has ", count,
                                                 " rows, and a batch at most ", UINT32_MAX)),
                row};
      }
      if (has_dims) dims[axes * row] = world_.RowsOf(static_cast<uint32_t>(count)).count;
    }
    Lay(own, rows, NumBytes(output_[feature].type), out);
    if (out->data == nullptr) out->dims = dims;
    return {};
  }

  // The host's part of one row of a column; false where it has too many.
  bool Own(const TensorType& type, const Column& in, int row, const RowBytes& whole, RowBytes* own,
           int64_t* count, Arena& arena) const {
    if (type.form == RowForm::kPackedRagged) {
      const RaggedRow ragged = ReadRaggedRow(type, whole);
      *count = static_cast<int64_t>(ragged.splits.front().size()) - 1;
      if (*count > UINT32_MAX) return false;
      *own = OwnRagged(ragged, world_.RowsOf(static_cast<uint32_t>(*count)), arena);
      return true;
    }
    if (type.form == RowForm::kPackedSparse) {
      const SparseRow sparse = ReadSparseRow(type, whole);
      *count = sparse.sizes[0];
      if (*count > UINT32_MAX) return false;
      *own = OwnSparse(sparse, world_.RowsOf(static_cast<uint32_t>(*count)), arena);
      return true;
    }
    const Shape shape = RowDims(type, in, row);
    *count = shape[0];
    if (*count > UINT32_MAX) return false;
    const RowSpan span = world_.RowsOf(static_cast<uint32_t>(*count));
    if (type.dtype == DType::kString) {
      const auto strings = static_cast<size_t>(NumElements(shape).value_or(0));
      const size_t each = *count > 0 ? strings / *count : 0;
      *own = OwnStrings(whole, strings, span.first * each, span.count * each, arena);
      return true;
    }
    const size_t each = *count > 0 ? whole.size / *count : 0;
    *own = {whole.data + span.first * each, span.count * each};
    return true;
  }

  // Where the caller asks for them, or where they are.
  static void Lay(const RowBytes* own, int rows, std::optional<int64_t> row_bytes, Column* out) {
    if (out->data == nullptr) {
      out->rows = own;
      return;
    }
    out->row_bytes = static_cast<size_t>(row_bytes.value_or(0));
    for (int row = 0; row < rows; ++row) {
      CopyInPieces(out->data + row * out->row_bytes, own[row].data, own[row].size);
    }
  }

  const Signature input_;
  Signature output_;
  const World world_;
  std::vector<bool> divided_;
};

}  // namespace

bool IsDivided(const TensorType& type, int64_t batch_rows) {
  return !type.shape.empty() &&
         (type.shape[0] == kUnknownSize || (batch_rows >= 0 && type.shape[0] == batch_rows));
}

std::unique_ptr<WorkOp> MakeOwnRows(Signature input, int64_t batch_rows, World world) {
  return std::make_unique<OwnRows>(std::move(input), batch_rows, world);
}

}  // namespace penstock
