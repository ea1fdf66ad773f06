// Files of a spec that are another process's descriptors, as the Python client's are that hold its arrays: neither their name nor their
// time says what they hold, and both are others where the same program makes the same spec again.
#pragma once

#include <string_view>

#include "google/protobuf/message.h"

namespace penstock {

// "/proc/PID/fd/N".
bool IsDescriptorPath(std::string_view path);

// Takes such paths of arrays out of a message and of those in it.
void StripDescriptorPaths(google::protobuf::Message* message);

}  // namespace penstock
