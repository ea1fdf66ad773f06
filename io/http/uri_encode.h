// Names as they stand in a URL: everything but letters, digits and "-_.~" as %XX, so that what is
// signed is what is sent.
//
// Threads:  any; no state.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace penstock {

// "/" stays.
std::string EncodePath(absl::string_view path);
// "/" does not.
std::string EncodeQuery(absl::string_view value);
// %XX, and with `plus_is_space` "+". What is not encoded well stays as it is.
std::string DecodeUri(absl::string_view text, bool plus_is_space);

}  // namespace penstock
