// A message as bytes that are the same for equal messages: protobuf leaves the order of a map's
// entries open.
//
// Threads:  any.
// Limits:   equal within a release of protobuf, as its documentation says.
#pragma once

#include <string>

#include "google/protobuf/message.h"

namespace penstock {

std::string DeterministicBytes(const google::protobuf::Message& message);

}  // namespace penstock
