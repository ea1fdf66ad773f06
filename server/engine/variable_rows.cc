#include "server/engine/variable_rows.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kPadding = 64;

uint64_t NextPart(uint64_t end) {
  return (end + kPadding + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void VariableRows::Reset(absl::Span<const BatchTensor> tensors, uint32_t rows,
                         uint32_t block_rows) {
  block_rows_ = block_rows;
  if (of_tensor_.empty()) {
    for (const BatchTensor& tensor : tensors) {
      of_tensor_.push_back(tensor.fixed() ? -1 : static_cast<int>(strings_.size()));
      if (!tensor.fixed()) strings_.push_back({tensor.name, {}});
    }
  }
  for (Strings& strings : strings_) {
    strings.blocks.resize((rows + block_rows - 1) / block_rows);
    for (Block& block : strings.blocks) {
      block.bytes.clear();
      block.sizes.clear();
    }
  }
}

void VariableRows::Put(size_t tensor, uint32_t first, uint32_t rows, const Column& column) {
  Block& block = strings_[of_tensor_[tensor]].blocks[first / block_rows_];
  for (uint32_t row = 0; row < rows; ++row) {
    const size_t size = column.row_size(row);
    block.bytes.append(reinterpret_cast<const char*>(column.row(row)), size);
    block.sizes.push_back(static_cast<uint32_t>(size));
  }
}

absl::Status VariableRows::Lay(const ClaimedSlot& slot, uint32_t rows,
                               std::vector<TensorExtent>* extents) {
  extents->clear();
  uint64_t end = 0;
  for (const Strings& strings : strings_) {
    uint64_t bytes = 0;
    for (const Block& block : strings.blocks) bytes += block.bytes.size();
    TensorExtent extent;
    extent.parts[0] = {end, (uint64_t{rows} + 1) * sizeof(int64_t)};
    extent.parts[1] = {NextPart(end + extent.parts[0].bytes), bytes};
    end = NextPart(extent.parts[1].offset + bytes);
    extents->push_back(extent);
  }
  if (end > slot.variable_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("batch larger than slot: its strings need ", end, " > ", slot.variable_bytes,
                     " bytes; raise ring { slot_bytes: N } or take smaller batches"));
  }
  for (size_t i = 0; i < strings_.size(); ++i) {
    const TensorExtent& extent = (*extents)[i];
    auto* offsets = reinterpret_cast<int64_t*>(slot.variable + extent.parts[0].offset);
    uint8_t* const values = slot.variable + extent.parts[1].offset;
    int64_t offset = 0;
    *offsets++ = 0;
    for (const Block& block : strings_[i].blocks) {
      std::memcpy(values + offset, block.bytes.data(), block.bytes.size());
      for (const uint32_t size : block.sizes) *offsets++ = offset += size;
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock
