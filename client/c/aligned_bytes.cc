#include "client/c/aligned_bytes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ring/layout.h"

namespace penstock_client {

using penstock::ring::kTensorAlignment;
using penstock::ring::kTensorPadding;

bool AlignedBytes::Reserve(uint64_t bytes) {
  if (bytes <= capacity_ && memory_ != nullptr) return true;
  uint64_t padded;
  if (__builtin_add_overflow(std::max(bytes, 2 * capacity_), kTensorPadding + kTensorAlignment - 1,
                             &padded))
    return false;
  padded &= ~uint64_t{kTensorAlignment - 1};
  std::unique_ptr<uint8_t, Free> grown(
      static_cast<uint8_t*>(std::aligned_alloc(kTensorAlignment, padded)));
  if (grown == nullptr) return false;
  if (bytes_ > 0) std::memcpy(grown.get(), memory_.get(), bytes_);
  memory_ = std::move(grown);
  capacity_ = padded - kTensorPadding;
  return true;
}

bool AlignedBytes::Append(const void* from, uint64_t bytes) {
  uint64_t needed;
  if (__builtin_add_overflow(bytes_, bytes, &needed) || !Reserve(needed)) return false;
  if (bytes > 0) std::memcpy(memory_.get() + bytes_, from, bytes);
  bytes_ = needed;
  return true;
}

}  // namespace penstock_client
