#include "server/text/decode/replaced_all.h"

namespace penstock::text {

std::string ReplacedAll(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);
  std::string result;
  size_t open = 0;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, open)) {
    result.append(text.substr(open, at - open)).append(to);
    open = at + from.size();
  }
  return result.append(text.substr(open));
}

}  // namespace penstock::text
