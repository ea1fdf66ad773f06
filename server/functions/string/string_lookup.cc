#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/expr/arguments.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

constexpr size_t kShownBytes = 40;

// Each word's number; the words lie in `text` or in `texts`.
struct Vocabulary {
  std::string text;
  std::shared_ptr<const std::vector<std::string>> texts;
  absl::flat_hash_map<absl::string_view, int64_t> numbers;
  // Of the longest: what is longer is none of them, and need not be gone through.
  size_t word_bytes_max = 0;
};

template <typename Words>
absl::Status Number(const Words& words, Vocabulary* vocabulary) {
  int64_t number = 0;
  for (const absl::string_view word : words) {
    if (!vocabulary->numbers.emplace(word, number).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("vocabulary: expected words that differ, found \"",
                       absl::CHexEscape(word.substr(0, kShownBytes)), "\" at ",
                       vocabulary->numbers[word], " and ", number));
    }
    vocabulary->word_bytes_max = std::max(vocabulary->word_bytes_max, word.size());
    ++number;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Vocabulary>> Read(const Argument& words,
                                                       const Argument& separator) {
  auto vocabulary = std::make_shared<Vocabulary>();
  absl::Status status;
  if (words.texts != nullptr && words.type.shape.size() == 1) {
    if (separator.given) return WrongArgument("separator", "none beside a list of words");
    vocabulary->texts = words.texts;
    status = Number(*vocabulary->texts, vocabulary.get());
  } else {
    std::string between = "\n";
    if (words.literal == nullptr || !std::holds_alternative<std::string>(*words.literal))
      return WrongArgument("vocabulary", "a text or a list of texts");
    status = FirstError({ReadConstant(words, "vocabulary", &vocabulary->text),
                         ReadConstant(separator, "separator", &between)});
    if (status.ok() && between.empty())
      return WrongArgument("separator", "a text that is not empty");
    if (status.ok()) status = Number(absl::StrSplit(vocabulary->text, between), vocabulary.get());
  }
  if (!status.ok()) return status;
  return vocabulary;
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t absent = 0;
  absl::Status status = ReadConstant(arguments[2], "default", INT64_MIN, INT64_MAX, &absent);
  if (!status.ok()) return status;
  auto vocabulary = Read(arguments[1], arguments[3]);
  if (!vocabulary.ok()) return vocabulary.status();
  return BindEachText(
      arguments[0], "input", {DType::kInt64, {}},
      [words = *std::move(vocabulary), absent, is_error = !arguments[2].given](
          absl::string_view word, RowOutput& out) {
        const auto found =
            word.size() > words->word_bytes_max ? words->numbers.end() : words->numbers.find(word);
        if (found == words->numbers.end() && is_error) {
          return absl::DataLossError(absl::StrCat(
              "expected one of the ", words->numbers.size(), " words of the vocabulary, found \"",
              absl::CHexEscape(word.substr(0, kShownBytes)), "\""));
        }
        const int64_t number = found == words->numbers.end() ? absent : found->second;
        std::memcpy(out.Reserve(sizeof(number)), &number, sizeof(number));
        out.Commit();
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kStringLookup({
    .name = "string_lookup",
    .signature = "string_lookup(input, vocabulary, default=None, separator=\"\\n\")",
    .doc = "Which word of a vocabulary a text is, from 0 on; int64. Labels are numbered so.\n"
           "\n"
           "input: a string, or a tensor of strings.\n"
           "vocabulary: the words, all different: a list of texts, or a text with one a line; a "
           "constant. Long ones stand in a file beside the spec (`constant { name: \"WORDS\" "
           "text_line: \"words.txt\" }`); in Python a list of any length is handed over as it is.\n"
           "default: the number of any other text, a constant; without it such a text is an error "
           "of its record.\n"
           "separator: what stands between the words of a text, where a line end is one of them or "
           "in one.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
