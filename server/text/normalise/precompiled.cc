#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/text/parts/parts.h"
#include "server/text/sentencepiece/character_map.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

// Unicode's longest replacement has 33 bytes.
constexpr size_t kReplacementBytesMax = 1 << 10;

bool BeginsCodePoint(std::string_view text) {
  return text.empty() || (static_cast<uint8_t>(text[0]) & 0xc0) != 0x80;
}

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(CharacterMap map) : map_(std::move(map)) {}

  void Apply(std::string* text) const override {
    std::string result;
    result.reserve(text->size());
    for (std::string_view rest = *text; !rest.empty();) {
      const size_t left = BytesLeft(rest);
      result.append(rest.substr(0, left));
      rest.remove_prefix(left);
      if (rest.empty()) break;
      CharacterMap::Change change;
      // A forged map may have it end within a character.
      if (map_.Find(rest, &change) && BeginsCodePoint(rest.substr(change.bytes))) {
        result.append(change.text);
      } else {
        change.bytes = CodePointBytes(static_cast<uint8_t>(rest[0]));
        result.append(rest.substr(0, change.bytes));
      }
      rest.remove_prefix(change.bytes);
    }
    *text = std::move(result);
  }

 private:
  // At the text's beginning, of ASCII, without a look at the map.
  size_t BytesLeft(std::string_view text) const {
    size_t at = 0;
    while (at < text.size() && map_.is_left(static_cast<uint8_t>(text[at])) &&
           (at + 1 == text.size() || static_cast<uint8_t>(text[at + 1]) < 0x80))
      ++at;
    return at;
  }

  const CharacterMap map_;
};

absl::StatusOr<std::unique_ptr<Normalizer>> Make(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type", "precompiled_charsmap"}); !status.ok())
    return status;
  const JsonPart charsmap = json["precompiled_charsmap"];
  std::string text, bytes;
  if (absl::Status status = charsmap.Read(&text); !status.ok()) return status;
  if (charsmap.is_null() || !absl::Base64Unescape(text, &bytes))
    return charsmap.Refuse("a map of characters in base64");
  auto map = CharacterMap::Read(bytes, charsmap.path());
  if (!map.ok()) return map.status();
  if (FindInvalidUtf8(map->replacements()) != std::string_view::npos)
    return charsmap.Refuse("a map whose replacements are UTF-8");
  bool are_whole = true;
  size_t longest = 0;
  map->ForEachReplacement([&](std::string_view replacement) {
    are_whole = are_whole && BeginsCodePoint(replacement);
    longest = std::max(longest, replacement.size());
  });
  if (!are_whole) return charsmap.Refuse("a map whose replacements begin with a character");
  if (longest > kReplacementBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(charsmap.path(),
                                                   ": replacement longer than limit: ", longest,
                                                   " > ", kReplacementBytesMax, " bytes"));
  }
  return std::make_unique<Precompiled>(*std::move(map));
}

const PartRegistration<Normalizer> kPrecompiled("Precompiled", Make);

}  // namespace
}  // namespace penstock::text
