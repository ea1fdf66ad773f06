// Recognises gathers that whole vectors do: channels in another order, planes out of pixels,
// mirrored rows.
//
// Threads:  constant after construction.
// Owns:     the kernel's tables.
// Limits:   gathers whose every 16 bytes come from a few vectors; the others are left to
//           kernels::Gather().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/kernels/byte_shuffle.h"

namespace penstock::expr {

class ShufflePattern {
 public:
  // Result element i is element source[i] of a row of `in_elements`. Null where single elements are
  // no slower.
  static std::unique_ptr<ShufflePattern> Make(const std::vector<int32_t>& source,
                                              size_t element_bytes, size_t in_elements);

  // Elements that Run() writes; what is left behind them is less than a vector.
  size_t elements() const { return elements_; }
  // Vectors of the row that each one of the result is put together of.
  size_t windows() const { return repeat_.chunks > 0 ? 1 : table_.windows; }
  void Run(const uint8_t* in, uint8_t* out) const {
    if (repeat_.chunks > 0) return kernels::RepeatBytes(repeat_, in, out);
    kernels::ShuffleBytes(table_, in, out);
  }

 private:
  ShufflePattern() = default;
  // A short choice that is repeated all along the row, as of the channels of pixels; null if it is
  // none.
  static std::unique_ptr<ShufflePattern> MakeRepeated(const std::vector<int32_t>& source,
                                                      size_t element_bytes, size_t in_elements);

  kernels::ByteRepeatTable repeat_;  // chunks == 0: it is none
  kernels::ByteShuffleTable table_;
  size_t elements_ = 0;
  std::vector<kernels::ShuffleChunk> chunks_;
  std::vector<int32_t> offsets_;
  std::vector<uint8_t> shuffles_;
};

}  // namespace penstock::expr
