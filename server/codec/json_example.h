// A tf.train.Example written as JSON, in protobuf's mapping: {"features": {"feature": {"id":
// {"int64List": {"value": ["7"]}}}}}.
//
// Threads:  safe from any thread.
// Owns:     nothing.
// Limits:   those of the protobuf library; values nest to its depth.
// Cost:     microseconds a value: the library's reader works on descriptors.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock {

// The serialized Example. DataLoss when the text is no JSON, or not that of an Example, or a list
// has a null in it.
absl::StatusOr<std::string> SerializeJsonExample(std::string_view json);

}  // namespace penstock
