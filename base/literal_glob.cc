#include "base/literal_glob.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr char kSpecial[] = "*?[\\{}";

}  // namespace

bool HasWildcards(const std::string& pattern) {
  return pattern.find_first_of("*?[{") != std::string::npos;
}

std::optional<std::string> LiteralFirst(const std::string& pattern,
                                        absl::FunctionRef<bool(const std::string& path)> is_there) {
  if (!HasWildcards(pattern)) return std::nullopt;
  std::string glob;
  size_t begin = 0;
  while (begin < pattern.size()) {
    const size_t end = std::min(pattern.find('/', begin), pattern.size());
    const std::string name = pattern.substr(begin, end - begin);
    if (name.find_first_of(kSpecial) == std::string::npos) {
      glob += name;
    } else if (is_there(pattern.substr(0, end))) {
      for (const char letter : name) {
        if (std::string(kSpecial).find(letter) != std::string::npos) glob += '\\';
        glob += letter;
      }
    } else {
      return glob + pattern.substr(begin);
    }
    if (end < pattern.size()) glob += '/';
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace penstock
