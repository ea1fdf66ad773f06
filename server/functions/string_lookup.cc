#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/expr/arguments.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

constexpr size_t kShownBytes = 40;

// Each word's number; the words lie in `text`.
struct Vocabulary {
  std::string text;
  absl::flat_hash_map<absl::string_view, int64_t> numbers;
};

absl::StatusOr<std::shared_ptr<const Vocabulary>> Read(std::string text,
                                                       const std::string& separator) {
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->text = std::move(text);
  int64_t number = 0;
  for (const absl::string_view word : absl::StrSplit(vocabulary->text, separator)) {
    if (!vocabulary->numbers.emplace(word, number).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("vocabulary: expected words that differ, found \"",
                       absl::CHexEscape(word.substr(0, kShownBytes)), "\" at ",
                       vocabulary->numbers[word], " and ", number));
    }
    ++number;
  }
  return vocabulary;
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  std::string text, separator = "\n";
  int64_t absent = 0;
  absl::Status status =
      FirstError({ReadConstant(arguments[1], "vocabulary", &text),
                  ReadConstant(arguments[2], "default", INT64_MIN, INT64_MAX, &absent),
                  ReadConstant(arguments[3], "separator", &separator)});
  if (!status.ok()) return status;
  if (separator.empty()) return WrongArgument("separator", "a text that is not empty");
  auto vocabulary = Read(std::move(text), separator);
  if (!vocabulary.ok()) return vocabulary.status();
  return BindEachText(
      arguments[0], "input", {DType::kInt64, {}},
      [words = *std::move(vocabulary), absent, is_error = !arguments[2].given](
          absl::string_view word, RowOutput& out) {
        const auto found = words->numbers.find(word);
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
           "vocabulary: the words, one a line of a text, all different; a constant.\n"
           "default: the number of any other text, a constant; without it such a text is an error "
           "of its record.\n"
           "separator: what stands between the words, where a line end is one of them or in one.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
