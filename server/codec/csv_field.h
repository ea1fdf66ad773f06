// The fields of one record of a CSV file (RFC 4180), as TensorFlow cuts them.
//
// Threads:  any; no state.
// Owns:     a field is a view of the record, or of the arena where it has been in quotation marks.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/arena.h"

namespace penstock {

// Takes the field that begins at `*at`, which goes to the delimiter behind it, or to the record's
// end. DataLoss for quotation marks where none may be.
absl::Status TakeCsvField(absl::string_view record, char delim, bool uses_quotes, size_t* at,
                          absl::string_view* text, Arena& arena);

}  // namespace penstock
