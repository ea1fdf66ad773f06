#include "server/engine/tensor/pad_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/row_shape.h"

namespace penstock {
namespace {

// Of a run beside its values, as StopLook counts it.
constexpr uint64_t kRunWork = 16;

}  // namespace

absl::Status CheckFits(const std::string& name, const Shape& row, const Shape& shape) {
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == kUnknownSize || row[axis] <= shape[axis]) continue;
    return absl::DataLossError(absl::StrCat(
        "feature \"", name, "\": larger than what it is to be padded to: ", ShapeToString(row),
        " > ", ShapeToString(shape)));
  }
  return absl::OkStatus();
}

void FillWith(const std::string& padding, size_t bytes, uint8_t* to) {
  if (bytes == 0) return;
  if (std::all_of(padding.begin(), padding.end(), [](char c) { return c == 0; })) {
    ClearInPieces(to, bytes);
    return;
  }
  CopyInPieces(to, padding.data(), padding.size());
  for (size_t done = padding.size(); done < bytes; done *= 2)
    CopyInPieces(to + done, to, std::min(done, bytes - done));
}

void VisitRuns(const Shape& from, const Shape& to,
               absl::FunctionRef<void(size_t from, size_t to, size_t count)> run) {
  if (from.empty()) {
    run(0, 0, 1);
    return;
  }
  if (*NumElements(from) == 0) return;
  const size_t last = from.size() - 1;
  const auto count = static_cast<size_t>(from[last]);
  Shape index(last, 0);
  StopLook look;
  for (size_t source = 0;; source += count) {
    look.Did(kRunWork);
    size_t target = 0;
    for (size_t axis = 0; axis < last; ++axis) target = (target + index[axis]) * to[axis + 1];
    run(source, target, count);
    size_t axis = last;
    while (axis > 0 && ++index[axis - 1] == from[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

RowStatus PadRows(const std::string& name, const RowLayout& layout, const Column& column,
                  uint32_t rows, uint8_t* to) {
  const size_t element = DTypeSize(layout.row.dtype);
  const size_t row_bytes = *NumElements(layout.shape) * element;
  FillWith(layout.padding, rows * row_bytes, to);
  for (uint32_t row = 0; row < rows; ++row) {
    const Shape shape = RowDims(layout.row, column, row);
    absl::Status status = CheckFits(name, shape, layout.shape);
    if (!status.ok()) return {std::move(status), static_cast<int>(row)};
    const uint8_t* const from = column.row(row);
    uint8_t* const target = to + row * row_bytes;
    VisitRuns(shape, layout.shape, [&](size_t source, size_t place, size_t count) {
      CopyInPieces(target + place * element, from + source * element, count * element);
    });
  }
  return {};
}

}  // namespace penstock
