// Files of a spec that are another process's descriptors, as the Python client's are that hold its
// arrays: neither their name nor their time says what they hold, and both are others where the same
// program makes the same spec again.
#pragma once

#include <string_view>

#include "penstock/v1/pipeline.pb.h"

namespace penstock {

// "/proc/PID/fd/N".
bool IsDescriptorPath(std::string_view path);

// Takes such paths of arrays out of a stage and of those in it.
void StripDescriptorPaths(v1::Stage* stage);

}  // namespace penstock
