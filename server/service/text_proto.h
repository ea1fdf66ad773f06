// Reads messages of Protobuf's text format that people wrote, with errors that people can use.
//
// Threads: safe from any thread.
// Limits:  kMaxTextBytes; messages nest at most 64 deep.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace penstock {

inline constexpr size_t kMaxTextBytes = 1 << 20;

// Fills `message` from `text`. InvalidArgument: `FILE:LINE:COLUMN: what is wrong`, lines and
// columns counted from 1, with the nearest field where a name is unknown. Nothing unknown is
// skipped.
absl::Status ParseTextProto(absl::string_view text, absl::string_view file_name,
                            google::protobuf::Message* message);

}  // namespace penstock
