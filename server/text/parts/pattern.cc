#include "server/text/parts/pattern.h"

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"

namespace penstock::text {
namespace {

// Of a match beside its bytes, as StopLook counts it.
constexpr uint64_t kMatchWork = 64;

}  // namespace

absl::Status Pattern::Read(const JsonPart& json) {
  std::string regex;
  absl::Status status = json.OnlyMembers({"String", "Regex"});
  if (status.ok()) status = json["String"].Read(&text_);
  if (status.ok()) status = json["Regex"].Read(&regex);
  if (!status.ok()) return status;
  if (text_.empty() == regex.empty())
    return json.Refuse("either \"String\" or \"Regex\", not empty");
  if (regex.empty()) return absl::OkStatus();
  published_ = FindPublishedPattern(regex);
  if (published_ != nullptr) return absl::OkStatus();
  auto made = Regex::Make(regex, Regex::Anchors::kLines);
  if (!made.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(json["Regex"].path(), ": ", made.status().message()));
  regex_ = *std::move(made);
  return absl::OkStatus();
}

absl::Status Replacement::Read(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "pattern", "content"});
  if (status.ok()) status = pattern_.Read(json["pattern"]);
  if (status.ok()) status = json["content"].Read(&with_);
  return status;
}

std::string Replacement::Apply(std::string_view text) const {
  std::string result;
  size_t open = 0;
  StopLook look;
  pattern_.ForEachMatch(text, [&](size_t from, size_t to) {
    look.Did(to - open + kMatchWork);
    result.append(text.substr(open, from - open)).append(with_);
    open = to;
  });
  return result.append(text.substr(open));
}

}  // namespace penstock::text
