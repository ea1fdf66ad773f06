#include "server/engine/variable_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kPadding = 64;

uint64_t NextPart(uint64_t end) {
  return std::min((end + kPadding + kAlignment - 1) / kAlignment * kAlignment,
                  VariableTensor::kTooMany);
}

}  // namespace

void VariableRows::Reset(absl::Span<const BatchTensor> tensors, absl::Span<const RowLayout> layouts,
                         uint32_t rows, uint32_t block_rows) {
  block_rows_ = block_rows;
  if (of_tensor_.empty()) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      of_tensor_.push_back(tensors[i].fixed() ? -1 : static_cast<int>(tensors_.size()));
      if (!tensors[i].fixed()) tensors_.emplace_back(tensors[i], layouts[i]);
    }
  }
  for (VariableTensor& tensor : tensors_) tensor.Reset((rows + block_rows - 1) / block_rows);
}

RowStatus VariableRows::Put(size_t tensor, uint32_t first, uint32_t rows, const Column& column) {
  return tensors_[of_tensor_[tensor]].Put(first / block_rows_, rows, column);
}

RowStatus VariableRows::Lay(const ClaimedSlot& slot, uint32_t rows, uint32_t shape_rows,
                            std::vector<TensorExtent>* extents) {
  extents->clear();
  uint64_t end = 0;
  // Of several tensors' failures the lowest row's counts.
  RowStatus failure;
  for (VariableTensor& tensor : tensors_) {
    VariableTensor::PartBytes bytes;
    RowStatus status = tensor.Measure(rows, shape_rows, &bytes);
    if (!status.ok()) {
      if (failure.ok() || status.row < failure.row) failure = std::move(status);
      continue;
    }
    TensorExtent& extent = extents->emplace_back();
    for (size_t part = 0; part < bytes.size() && (part == 0 || bytes[part] > 0 || part == 1);
         ++part) {
      extent.parts[part] = {end, bytes[part]};
      end = NextPart(end + bytes[part]);
    }
  }
  if (!failure.ok()) return failure;
  if (end > slot.variable_bytes) {
    return {
        absl::ResourceExhaustedError(absl::StrCat(
            "batch larger than slot: what only the data tells the size of needs ",
            end == VariableTensor::kTooMany ? "2^60 or more" : absl::StrCat(end), " > ",
            slot.variable_bytes, " bytes; raise ring { slot_bytes: N } or take smaller batches")),
        -1};
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    std::array<uint8_t*, VariableTensor::kParts> parts;
    for (size_t part = 0; part < parts.size(); ++part)
      parts[part] = slot.variable + (*extents)[i].parts[part].offset;
    tensors_[i].Write(parts);
  }
  return {};
}

}  // namespace penstock
