// A regular expression with look-ahead, as files of tokenizers have them: PCRE2, compiled to machine code.
//
// Threads:  constant after Make(); safe from any thread.
// Limits:   a match takes kMatchStepsMax steps at most; a text whose match takes more is refused with ResourceExhausted (by an exception of
//           type RegexTooLong, as it may happen in the middle of a text). Looks for a stop between matches.
// Source:   the syntax is that of Perl, which the patterns of published tokenizers keep to; classes are those of Unicode.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock::text {

// Thrown by ForEachMatch().
struct RegexTooLong {};

class Regex {
 public:
  static constexpr uint32_t kMatchStepsMax = 10'000'000;

  // InvalidArgument says what is wrong with the expression, and where.
  static absl::StatusOr<std::unique_ptr<Regex>> Make(std::string_view pattern);
  virtual ~Regex() = default;

  // Calls `match(from, to)` for each match, from left to right; empty ones are left out. REQUIRES: valid UTF-8.
  virtual void ForEachMatch(std::string_view text,
                            const std::function<void(size_t from, size_t to)>& match) const = 0;
};

}  // namespace penstock::text
