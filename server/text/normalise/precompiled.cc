#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/text/parts/character_map.h"
#include "server/text/parts/parts.h"
#include "server/text/unicode/clusters.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

// Unicode's longest replacement has 33 bytes.
constexpr size_t kReplacementBytesMax = 64;
// Clusters below so many bytes are looked up as a whole, the characters of others one by one.
constexpr size_t kLongClusterBytes = 6;

// The map of a model of SentencePiece, as `tokenizers` applies it: cluster by cluster, by the
// shortest text of the map with which a cluster begins. The rest of the cluster goes with it.
class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(CharacterMap map) : map_(std::move(map)) {}

  void Apply(std::string* text) const override {
    std::string result;
    result.reserve(text->size());
    StopLook look;
    std::string_view rest = *text;
    while (!rest.empty()) {
      const size_t left = BytesLeft(rest);
      result.append(rest.substr(0, left));
      rest.remove_prefix(left);
      look.Did(left);
      if (rest.empty()) break;
      const auto* const at = reinterpret_cast<const uint8_t*>(rest.data());
      std::string_view cluster = rest.substr(0, ClusterBytes(at, at + rest.size()));
      rest.remove_prefix(cluster.size());
      look.Did(16 * cluster.size());
      if (cluster.size() < kLongClusterBytes && AppendReplaced(cluster, &result)) continue;
      while (!cluster.empty()) {
        const std::string_view character =
            cluster.substr(0, CodePointBytes(static_cast<uint8_t>(cluster[0])));
        if (!AppendReplaced(character, &result)) result.append(character);
        cluster.remove_prefix(character.size());
      }
    }
    *text = std::move(result);
  }

  // What is made first counts as the text's beginning, even where the first character went.
  void ApplyWithFirst(std::string* text, std::string* first) const override {
    const bool has_first = !first->empty();
    Apply(first);
    Apply(text);
    if (has_first && first->empty() && !text->empty())
      first->assign(*text, 0, CodePointBytes(static_cast<uint8_t>((*text)[0])));
  }

 private:
  bool AppendReplaced(std::string_view text, std::string* result) const {
    std::string_view replacement;
    if (!map_.FindShortest(text, &replacement)) return false;
    result->append(replacement);
    return true;
  }

  // At the text's beginning, of ASCII, without a look at the map. Each is a cluster of its own, or
  // "\r\n", whose characters the map leaves as well.
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
    return absl::InvalidArgumentError(
        absl::StrCat(charsmap.path(), ": expected replacements in UTF-8, found other bytes"));
  bool are_whole = true;
  size_t longest = 0;
  map->ForEachReplacement([&](std::string_view replacement) {
    are_whole =
        are_whole && (replacement.empty() || (static_cast<uint8_t>(replacement[0]) & 0xc0) != 0x80);
    longest = std::max(longest, replacement.size());
  });
  if (!are_whole) {
    return absl::InvalidArgumentError(absl::StrCat(
        charsmap.path(),
        ": expected replacements that begin with a character, found one that begins in one"));
  }
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
