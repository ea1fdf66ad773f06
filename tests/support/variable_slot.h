// Lays tensors that are not fixed into a slot, part by part, as the engine does: what tests of the
// ring and of its clients publish.
//
// Threads:  one at a time.
// Owns:     nothing; it writes into the memory that it is given, and throws when that is full.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "ring/layout.h"

namespace penstock {

class VariableSlot {
 public:
  VariableSlot(uint8_t* memory, uint64_t capacity_bytes)
      : memory_(memory), capacity_bytes_(capacity_bytes) {}

  // One part with a copy of `values`.
  template <typename T>
  ring::TensorPart Part(const std::vector<T>& values) {
    return Bytes(values.data(), values.size() * sizeof(T));
  }

  // The offsets and the bytes of strings.
  std::vector<ring::TensorPart> StringParts(const std::vector<std::string>& strings) {
    std::vector<int64_t> offsets = {0};
    std::string bytes;
    for (const std::string& text : strings) {
      bytes += text;
      offsets.push_back(static_cast<int64_t>(bytes.size()));
    }
    const ring::TensorPart first = Part(offsets);
    return {first, Bytes(bytes.data(), bytes.size())};
  }

  // Adds a tensor of the parts that were made last, in the order of ring/layout.h.
  void Add(const std::vector<ring::TensorPart>& parts) {
    ring::TensorExtent extent = {};
    for (size_t i = 0; i < parts.size(); ++i) extent.parts[i] = parts[i];
    extents_.push_back(extent);
  }
  template <typename T>
  void AddDense(const std::vector<T>& values, const std::vector<int64_t>& shape) {
    const ring::TensorPart first = Part(values);
    Add({first, Part(shape)});
  }
  // With a shape where an axis is unknown, and with row splits for a ragged one.
  void AddStrings(const std::vector<std::string>& strings,
                  const std::vector<std::vector<int64_t>>& shape_or_splits = {}) {
    std::vector<ring::TensorPart> parts = StringParts(strings);
    for (const auto& numbers : shape_or_splits) parts.push_back(Part(numbers));
    Add(parts);
  }
  template <typename T>
  void AddRagged(const std::vector<T>& values, const std::vector<std::vector<int64_t>>& splits) {
    std::vector<ring::TensorPart> parts = {Part(values)};
    for (const auto& numbers : splits) parts.push_back(Part(numbers));
    Add(parts);
  }

  const std::vector<ring::TensorExtent>& extents() const { return extents_; }

 private:
  ring::TensorPart Bytes(const void* from, uint64_t bytes) {
    const ring::TensorPart part = {used_bytes_, bytes};
    const uint64_t padded = (bytes + ring::kTensorPadding + ring::kTensorAlignment - 1) &
                            ~uint64_t{ring::kTensorAlignment - 1};
    if (padded > capacity_bytes_ - used_bytes_) throw std::length_error("a test's slot is full");
    if (bytes > 0) std::memcpy(memory_ + used_bytes_, from, bytes);
    used_bytes_ += padded;
    return part;
  }

  uint8_t* memory_;
  uint64_t capacity_bytes_;
  uint64_t used_bytes_ = 0;
  std::vector<ring::TensorExtent> extents_;
};

}  // namespace penstock
