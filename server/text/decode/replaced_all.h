// Text for text, which several decoders need.
//
// Threads:  functions without state.
#pragma once

#include <string>
#include <string_view>

namespace penstock::text {

// Each `from` made `to`.
std::string ReplacedAll(std::string_view text, std::string_view from, std::string_view to);

}  // namespace penstock::text
