// Text for a terminal: names and messages may hold what a terminal would do instead of show.
//
// Threads:  any; no state.
// Cost:     a look at each byte, and a copy.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

// Control characters (C0 but for the end of a line and the tabulator, DEL, and C1 in UTF-8) as \x1b
// or \u009b, everything else as it is.
std::string ShownText(std::string_view text);

}  // namespace penstock
