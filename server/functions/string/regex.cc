#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
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
          std::string without(text);
          const int matches = all ? RE2::GlobalReplace(&without, *pattern, "") : 1;
          bytes_max = RewrittenBytesMax(text.size(), static_cast<uint64_t>(matches), rewrite);
          if (bytes_max > kEachStringBytesMax) {
            return absl::ResourceExhaustedError(
                absl::StrCat("result larger than the limit: ", bytes_max, " > ",
                             kEachStringBytesMax, " bytes of ", matches, " matches"));
          }
        }
        std::string changed(text);
        if (all) {
          RE2::GlobalReplace(&changed, *pattern, Piece(rewrite));
        } else {
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
