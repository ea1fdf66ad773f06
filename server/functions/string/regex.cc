#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "re2/re2.h"
#include "server/expr/arguments.h"
#include "server/expr/each_string.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

re2::StringPiece Piece(absl::string_view text) { return {text.data(), text.size()}; }

// What a text with its matches rewritten comes to at most: each group of the rewrite lies in the
// match, and matches lie apart.
uint64_t RewrittenBytesMax(size_t text, uint64_t matches, const std::string& rewrite) {
  const auto groups = static_cast<uint64_t>(std::count(rewrite.begin(), rewrite.end(), '\\')) + 1;
  return groups * text + matches * rewrite.size();
}

// How many bytes the character at the beginning of `text` has, as RE2 counts them: one where there
// is none.
size_t CharacterBytes(absl::string_view text) {
  // The least code point that is written with so many bytes.
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto byte = [&](size_t at) { return static_cast<uint32_t>(text[at]) & 0xff; };
  const uint32_t first = byte(0);
  const size_t bytes = first < 0xc0   ? 1
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                       : first < 0xf8 ? 4
                                      : 1;
  if (bytes == 1 || text.size() < bytes) return 1;
  uint32_t code = first & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 1;
    code = code << 6 | (byte(i) & 0x3f);
  }
  return code < kLeast[bytes] || code > 0x10ffff ? 1 : bytes;
}

// Of a match beside its bytes, as StopLook counts it.
constexpr uint64_t kMatchWork = 256;

// Appends the text with its matches rewritten to `out`, and returns how many there are: what
// RE2::GlobalReplace makes, with a look for a stop between matches. Behind a match an empty one is
// none.
uint64_t ReplaceAll(absl::string_view text, const RE2& pattern, const std::string& rewrite,
                    std::string* out) {
  if (text.data() == nullptr) text = "";
  std::array<re2::StringPiece, 10> groups;  // \0 to \9
  const int num_groups = 1 + RE2::MaxSubmatch(Piece(rewrite));
  uint64_t matches = 0;
  size_t at = 0;
  size_t last_end = absl::string_view::npos;
  StopLook look;
  while (at <= text.size() &&
         pattern.Match(Piece(text), at, text.size(), RE2::UNANCHORED, groups.data(), num_groups)) {
    const auto begin = static_cast<size_t>(groups[0].data() - text.data());
    const size_t end = begin + groups[0].size();
    look.Did(end - at + kMatchWork);
    out->append(text.data() + at, begin - at);
    if (begin == end && begin == last_end) {
      const size_t next =
          begin < text.size() ? begin + CharacterBytes(text.substr(begin)) : begin + 1;
      out->append(text.data() + begin, std::min(next, text.size()) - begin);
      at = next;
      continue;
    }
    pattern.Rewrite(out, Piece(rewrite), groups.data(), num_groups);
    at = last_end = end;
    ++matches;
  }
  if (at < text.size()) out->append(text.data() + at, text.size() - at);
  return matches;
}

// `pattern`, in RE2's syntax, in which nothing takes more than linear time.
absl::StatusOr<std::shared_ptr<const RE2>> ReadPattern(const Argument& argument) {
  std::string pattern;
  if (absl::Status status = ReadConstant(argument, "pattern", &pattern); !status.ok())
    return status;
  auto compiled = std::make_shared<RE2>(pattern, RE2::Quiet);
  if (!compiled->ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pattern: expected a regular expression, found \"", pattern, "\": ", compiled->error()));
  }
  return compiled;
}

absl::StatusOr<BoundRowFunction> BindFullMatch(absl::Span<const Argument> arguments) {
  auto pattern = ReadPattern(arguments[1]);
  if (!pattern.ok()) return pattern.status();
  return BindEachText(arguments[0], "input", {DType::kBool, {}},
                      [pattern = *std::move(pattern)](absl::string_view text, RowOutput& out) {
                        *out.Reserve(1) = RE2::FullMatch(Piece(text), *pattern) ? 1 : 0;
                        out.Commit();
                        return absl::OkStatus();
                      });
}

absl::StatusOr<BoundRowFunction> BindReplace(absl::Span<const Argument> arguments) {
  auto pattern = ReadPattern(arguments[1]);
  if (!pattern.ok()) return pattern.status();
  std::string rewrite;
  bool all = true;
  absl::Status status = FirstError({ReadConstant(arguments[2], "rewrite", &rewrite),
                                    ReadConstant(arguments[3], "replace_global", &all)});
  if (!status.ok()) return status;
  std::string error;
  if (!(*pattern)->CheckRewriteString(Piece(rewrite), &error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rewrite: expected a text for the pattern's groups, found \"", rewrite, "\": ", error));
  }
  return BindEachText(
      arguments[0], "input", {DType::kString, {}},
      [pattern = *std::move(pattern), rewrite, all](absl::string_view text, RowOutput& out) {
        uint64_t bytes_max = RewrittenBytesMax(text.size(), all ? text.size() + 1 : 1, rewrite);
        if (bytes_max > kEachStringBytesMax) {
          std::string without;
          const uint64_t matches = all ? ReplaceAll(text, *pattern, "", &without) : 1;
          bytes_max = RewrittenBytesMax(text.size(), matches, rewrite);
          if (bytes_max > kEachStringBytesMax) {
            return absl::ResourceExhaustedError(
                absl::StrCat("result larger than the limit: ", bytes_max, " > ",
                             kEachStringBytesMax, " bytes of ", matches, " matches"));
          }
        }
        std::string changed;
        if (all) {
          ReplaceAll(text, *pattern, rewrite, &changed);
        } else {
          changed = std::string(text);
          RE2::Replace(&changed, *pattern, Piece(rewrite));
        }
        PutText(changed, out);
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kRegexFullMatch({
    .name = "regex_full_match",
    .signature = "regex_full_match(input, pattern)",
    .doc = "Whether a whole text is as a regular expression says, as tf.strings.regex_full_match "
           "finds it; bool.\n"
           "\n"
           "input: a string, or a tensor of strings.\n"
           "pattern: in the syntax of RE2, a constant.",
    .bind = BindFullMatch,
});

const RowFunctionRegistration kRegexReplace({
    .name = "regex_replace",
    .signature = "regex_replace(input, pattern, rewrite, replace_global=True)",
    .doc = "A text with other texts where a regular expression matches, as "
           "tf.strings.regex_replace makes it.\n"
           "\n"
           "input: a string, or a tensor of strings.\n"
           "pattern: in the syntax of RE2, a constant.\n"
           "rewrite: what takes a match's place, in which \\1 to \\9 are the pattern's groups and "
           "\\0 the whole match; a constant.\n"
           "replace_global: False for the first match alone; a constant.",
    .bind = BindReplace,
});

}  // namespace
}  // namespace penstock::expr
