#define PCRE2_CODE_UNIT_WIDTH 8
#include "server/text/scan/regex.h"

#include <pcre2.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

// White_Space, and what belongs to a word, as the libraries have them: PCRE2 means others by \s and
// \w.
constexpr std::string_view kSpaces =
    "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"
    "\\x{3000}";
constexpr std::string_view kWords =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\xb2\\xb3\\xb9\\xbc-\\xbe"
    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";

absl::Status RefuseAt(size_t byte, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected a regular expression that PCRE2 reads as the library does, found ",
                   std::string(what), " at byte ", byte));
}

// The pattern with those in the place of \s, \S, \w and \W; in a class \S and \W stay as they are.
absl::StatusOr<std::string> Translated(std::string_view pattern, Regex::Anchors anchors) {
  std::string result;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      const char kind = static_cast<char>(escaped | 0x20);
      const bool negated = kind != escaped;
      // A hexadecimal digit to the libraries, a horizontal space to PCRE2.
      if (kind == 'h') return RefuseAt(i - 1, "\\h");
      if ((kind == 's' || kind == 'w') && !(in_class && negated)) {
        const std::string_view set = kind == 's' ? kSpaces : kWords;
        result += in_class ? "" : negated ? "[^" : "[";
        result += set;
        result += in_class ? "" : "]";
        continue;
      }
      result += {c, escaped};
      continue;
    }
    if (in_class && c == '[' && i + 1 < pattern.size() && pattern[i + 1] == ':') {
      // [:alpha:]
      const size_t end = std::min(pattern.find(":]", i), pattern.size() - 2) + 2;
      result += pattern.substr(i, end - i);
      i = end - 1;
      continue;
    }
    // PCRE2 has neither classes in classes nor their intersections, and takes these for plain
    // characters.
    if (in_class && c == '[') return RefuseAt(i, "a class in a class");
    if (in_class && pattern.substr(i, 2) == "&&") return RefuseAt(i, "&& in a class");
    // Oniguruma's m is PCRE2's s.
    if (!in_class && anchors == Regex::Anchors::kLines && pattern.substr(i, 2) == "(?" &&
        pattern.substr(i, pattern.find_first_not_of("imsx-", i + 2) - i).find('m') !=
            std::string_view::npos)
      return RefuseAt(i, "the option m");
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    result.push_back(c);
  }
  return result;
}

class Pcre2Regex final : public Regex {
 public:
  Pcre2Regex(std::unique_ptr<pcre2_code, Free> code,
             std::unique_ptr<pcre2_match_context, Free> context)
      : code_(std::move(code)), context_(std::move(context)) {}

  void ForEachMatch(std::string_view text,
                    const std::function<void(size_t, size_t)>& match) const override {
    const std::unique_ptr<pcre2_match_data, Free> data(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
    StopLook look;
    size_t at = 0;
    while (at < text.size()) {
      const auto match_by = [&](uint32_t options) {
        return pcre2_match(code_.get(), bytes, text.size(), at, PCRE2_NO_UTF_CHECK | options,
                           data.get(), context_.get());
      };
      int found = match_by(0);
      // Machine code has a stack of 32 KiB, the interpreter a heap.
      if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match_by(PCRE2_NO_JIT);
      if (found == PCRE2_ERROR_NOMATCH) return;
      if (found < 0) throw RegexTooLong();
      const size_t* const ends = pcre2_get_ovector_pointer(data.get());
      look.Did(ends[1] - at + 64);
      if (ends[1] > ends[0]) {
        match(ends[0], ends[1]);
        at = ends[1];
      } else {
        at = ends[1];
        if (at < text.size()) at += CodePointBytes(bytes[at]);
      }
    }
  }

 private:
  const std::unique_ptr<pcre2_code, Free> code_;
  const std::unique_ptr<pcre2_match_context, Free> context_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Regex>> Regex::Make(std::string_view given, Anchors anchors) {
  const absl::StatusOr<std::string> translated = Translated(given, anchors);
  if (!translated.ok()) return translated.status();
  const std::string& pattern = *translated;
  const uint32_t ends = anchors == Anchors::kLines ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY;
  int error = 0;
  size_t offset = 0;
  std::unique_ptr<pcre2_code, Free> code(pcre2_compile(
      reinterpret_cast<const uint8_t*>(pattern.data()), pattern.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | ends, &error, &offset, nullptr));
  if (code == nullptr) {
    uint8_t message[256] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    return absl::InvalidArgumentError(
        absl::StrCat("expected a regular expression, found an error at byte ", offset, ": ",
                     reinterpret_cast<const char*>(message)));
  }
  // Without machine code for it, it is interpreted.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  std::unique_ptr<pcre2_match_context, Free> context(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(context.get(), kMatchStepsMax);
  return std::make_unique<Pcre2Regex>(std::move(code), std::move(context));
}

}  // namespace penstock::text
