// A regular expression with look-ahead, as files of tokenizers have them: PCRE2, compiled to
// machine code.
//
// Threads:  constant after Make(); safe from any thread.
// Limits:   a match takes kMatchStepsMax steps at most; a text whose match takes more is refused
//           with ResourceExhausted (by an exception of type RegexTooLong, as it may happen in the
//           middle of a text: see WithinRegexSteps()). Looks for a stop between matches.
// Source:   the syntax is that of Perl, which the patterns of published tokenizers keep to; classes
//           are those of Unicode.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace penstock::text {

// Thrown by ForEachMatch().
struct RegexTooLong {};

class Regex {
 public:
  static constexpr uint32_t kMatchStepsMax = 10'000'000;

  // Where ^ and $ match: at each line, as Oniguruma has it (a tokenizer.json), or at the text's two
  // ends alone, as Rust has it (tiktoken).
  enum class Anchors : bool { kLines, kText };

  // InvalidArgument says what is wrong with the expression, and where; so it does of what PCRE2
  // reads otherwise than the libraries.
  static absl::StatusOr<std::unique_ptr<Regex>> Make(std::string_view pattern, Anchors anchors);
  virtual ~Regex() = default;

  // Calls `match(from, to)` for each match, from left to right; empty ones are left out. REQUIRES:
  // valid UTF-8.
  virtual void ForEachMatch(std::string_view text,
                            const std::function<void(size_t from, size_t to)>& match) const = 0;
};

// Does `work`, which gives an absl::Status; ResourceExhausted where a match in it takes too many
// steps.
template <typename Work>
absl::Status WithinRegexSteps(Work work) {
  try {
    return work();
  } catch (const RegexTooLong&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a match of a regular expression of the tokenizer takes more than ",
                     Regex::kMatchStepsMax, " steps"));
  }
}

}  // namespace penstock::text
