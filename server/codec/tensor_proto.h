// Reads serialized TensorProto messages of numbers, as tf.io.serialize_tensor writes them, without
// the protobuf library.
//
// Threads:  any; no state.
// Limits:   kTensorBytesMax of values, 16 axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/signature.h"

namespace penstock {

inline constexpr int64_t kTensorBytesMax = int64_t{1} << 28;

struct ParsedTensor {
  TensorType type;
  std::string values;  // in C order
};

// DataLoss for what is malformed, of strings, or has another number of values than its shape. As in
// TensorFlow the last of too few listed values stands for all that follow.
absl::StatusOr<ParsedTensor> ParseTensorProto(const uint8_t* data, size_t size);

}  // namespace penstock
