// A message of the control plane as one line of JSON, with the names of its fields as in
// control.proto.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/statusor.h"

namespace penstock::ctl {

enum class Zeros { kLeftOut, kShown };

// With the end of the line.
absl::StatusOr<std::string> JsonLine(const google::protobuf::Message& message, Zeros zeros);

// Prints it. CommandLine says where stdout cannot be written.
absl::Status PrintJson(const google::protobuf::Message& message);

}  // namespace penstock::ctl
