// Values of one task's rows, kept one after another until the batch is laid into its slot: numbers
// or strings.
//
// Threads:  as server/engine/tensor/joined_tensor.h says.
// Owns:     a copy of every value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/in_pieces.h"
#include "base/packed_row.h"

namespace penstock {

class RowValues {
 public:
  void Clear() {
    bytes_.clear();
    sizes_.clear();
    count_ = 0;
  }
  void Append(const PackedValues& values) {
    AppendInPieces(&bytes_, {reinterpret_cast<const char*>(values.bytes), values.size});
    InPieces(values.string_sizes != nullptr ? values.count : 0, [&](size_t first, size_t some) {
      for (size_t i = first; i < first + some; ++i) sizes_.push_back(values.string_size(i));
    });
    count_ += values.count;
  }

  size_t count() const { return count_; }
  size_t bytes() const { return bytes_.size(); }

  // Writes the bytes and, of strings, the end of each behind `offset`; returns where they end.
  int64_t Write(uint8_t* to, int64_t offset, int64_t* ends) const {
    CopyInPieces(to + offset, bytes_.data(), bytes_.size());
    InPieces(sizes_.size(), [&](size_t first, size_t some) {
      for (size_t i = first; i < first + some; ++i) *ends++ = offset += sizes_[i];
    });
    return sizes_.empty() ? offset + static_cast<int64_t>(bytes_.size()) : offset;
  }

 private:
  std::string bytes_;
  std::vector<uint32_t> sizes_;  // strings: of each
  size_t count_ = 0;
};

// All of a batch's values as the first part or, of strings, the first two parts of a tensor.
template <typename Blocks>
void WriteValues(const Blocks& blocks, bool is_string, uint8_t* const* parts) {
  auto* ends = reinterpret_cast<int64_t*>(parts[0]);
  if (is_string) *ends++ = 0;
  int64_t offset = 0;
  for (const auto& block : blocks) {
    offset = block.values.Write(parts[is_string ? 1 : 0], offset, is_string ? ends : nullptr);
    if (is_string) ends += block.values.count();
  }
}

}  // namespace penstock
