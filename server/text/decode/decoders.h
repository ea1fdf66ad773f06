// What the decoders share.
#pragma once

#include <string>
#include <string_view>

namespace penstock::text {

// Each `from` made `to`.
std::string ReplacedAll(std::string_view text, std::string_view from, std::string_view to);

}  // namespace penstock::text
