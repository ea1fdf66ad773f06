#include "io/http/http_message.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace {

constexpr size_t kHeadBytesMax = 64 << 10;
// More of them would take long to count.
constexpr size_t kHeadersMax = 256;

}  // namespace

absl::string_view HttpResponse::Header(absl::string_view name) const {
  for (auto header = headers.rbegin(); header != headers.rend(); ++header)
    if (header->first == name) return header->second;
  return "";
}

void TakeHeaderLine(absl::string_view line, HttpResponse* response) {
  if (absl::StartsWith(line, "HTTP/")) {
    response->headers.clear();
    return;
  }
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos || response->headers.size() >= kHeadersMax) return;
  size_t bytes = line.size();
  for (const auto& [name, value] : response->headers) bytes += name.size() + value.size();
  if (bytes > kHeadBytesMax) return;
  response->headers.emplace_back(absl::AsciiStrToLower(line.substr(0, colon)),
                                 std::string(absl::StripAsciiWhitespace(line.substr(colon + 1))));
}

std::optional<ContentRange> ParseContentRange(absl::string_view value) {
  if (!absl::ConsumePrefix(&value, "bytes ")) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(value, absl::MaxSplits('/', 1));
  if (parts.size() != 2) return std::nullopt;
  ContentRange range;
  uint64_t total = 0;
  if (parts[1] != "*") {
    if (!absl::SimpleAtoi(parts[1], &total)) return std::nullopt;
    range.total = total;
  }
  if (parts[0] == "*") {
    range.is_unsatisfied = true;
    return range;
  }
  const std::vector<absl::string_view> ends = absl::StrSplit(parts[0], absl::MaxSplits('-', 1));
  if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &range.first) ||
      !absl::SimpleAtoi(ends[1], &range.last) || range.last < range.first ||
      (range.total && range.last >= *range.total)) {
    return std::nullopt;
  }
  return range;
}

}  // namespace penstock
