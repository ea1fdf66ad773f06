// Whether a name can be shown: in a terminal, a log line, a metric's label, a Protobuf string.
//
// Threads:  no state; safe from any thread.
// Cost:     a look at each byte.
#pragma once

#include <string_view>

namespace penstock::ring {

// Valid UTF-8 (RFC 3629: no overlong forms, no surrogates) without the control characters C0, DEL
// and C1.
bool IsPrintableUtf8(std::string_view text);

}  // namespace penstock::ring
