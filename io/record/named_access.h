// Formats whose name alone says which records there are: for the command, which indexes files
// without an op. A format with further options (csv) is known to its op alone.
//
// Threads:  any.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "io/record/record_access.h"

namespace penstock {

// The one of that RecordAccess::IndexKey(): "tfrecord", "text_line". Null where there is none.
const RecordAccess* AccessNamed(absl::string_view index_key);
// All of them, as a message lists them.
std::string NamesOfAccesses();

}  // namespace penstock
