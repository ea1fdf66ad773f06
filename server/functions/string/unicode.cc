#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/large_charge.h"
#include "base/utf8.h"
#include "server/expr/arguments.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

constexpr int32_t kReplacement = 0xfffd;

// What is done with bytes that are no UTF-8.
enum class OnMalformed : uint8_t { kStrict, kReplace, kIgnore };

absl::Status ReadErrors(const Argument& argument, OnMalformed* on_malformed) {
  std::string name = "replace";
  if (absl::Status status = ReadConstant(argument, "errors", &name); !status.ok()) return status;
  if (name == "strict") {
    *on_malformed = OnMalformed::kStrict;
  } else if (name == "replace") {
    *on_malformed = OnMalformed::kReplace;
  } else if (name == "ignore") {
    *on_malformed = OnMalformed::kIgnore;
  } else {
    return WrongArgument("errors", "\"strict\", \"replace\" or \"ignore\"");
  }
  return absl::OkStatus();
}

// Calls visit(code point, its bytes) for each character.
template <typename Visit>
absl::Status VisitCharacters(absl::string_view text, OnMalformed on_malformed, Visit visit) {
  StopLook look;
  for (size_t at = 0; at < text.size();) {
    size_t bytes = 0;
    const int32_t code = DecodeUtf8(text.substr(at), &bytes);
    if (code >= 0) {
      visit(code, text.substr(at, bytes));
    } else if (on_malformed == OnMalformed::kStrict) {
      return absl::DataLossError(absl::StrCat("expected UTF-8, found other bytes at ", at));
    } else if (on_malformed == OnMalformed::kReplace) {
      visit(kReplacement, absl::string_view("\xef\xbf\xbd"));
    }
    at += bytes;
    look.Did(bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundRowFunction> BindDecode(absl::Span<const Argument> arguments) {
  OnMalformed on_malformed;
  if (absl::Status status = ReadErrors(arguments[1], &on_malformed); !status.ok()) return status;
  return BindEachText(arguments[0], "input", {DType::kInt32, {kUnknownSize}},
                      [on_malformed](absl::string_view text, RowOutput& out) {
                        LargeCharge charge;
                        std::vector<int32_t> codes;
                        absl::Status status = VisitCharacters(text, on_malformed,
                                                              [&](int32_t code, absl::string_view) {
                                                                charge.MakeRoom(codes, 1);
                                                                codes.push_back(code);
                                                              });
                        if (!status.ok()) return status;
                        const size_t bytes = codes.size() * sizeof(int32_t);
                        out.SetShape({static_cast<int64_t>(codes.size())});
                        uint8_t* const to = out.Reserve(bytes);
                        CopyInPieces(to, codes.data(), bytes);
                        out.Commit();
                        return absl::OkStatus();
                      });
}

absl::StatusOr<BoundRowFunction> BindSplit(absl::Span<const Argument> arguments) {
  OnMalformed on_malformed;
  if (absl::Status status = ReadErrors(arguments[1], &on_malformed); !status.ok()) return status;
  return BindEachText(arguments[0], "input", {DType::kString, {kUnknownSize}},
                      [on_malformed](absl::string_view text, RowOutput& out) {
                        LargeCharge charge;
                        std::vector<absl::string_view> characters;
                        absl::Status status = VisitCharacters(
                            text, on_malformed, [&](int32_t, absl::string_view character) {
                              charge.MakeRoom(characters, 1);
                              characters.push_back(character);
                            });
                        return status.ok() ? PutTexts(characters, out) : status;
                      });
}

const RowFunctionRegistration kUnicodeDecode({
    .name = "unicode_decode",
    .signature = "unicode_decode(input, errors=\"replace\")",
    .doc = "The code points of a text in UTF-8, as tf.strings.unicode_decode finds them; int32.\n"
           "\n"
           "input: a string, which becomes (n,); or a tensor of strings, all of as many "
           "characters, (..., n).\n"
           "errors: what becomes of bytes that are no UTF-8: \"replace\", U+FFFD for each longest "
           "beginning of a character; \"ignore\", nothing; \"strict\", an error of its record; a "
           "constant.",
    .bind = BindDecode,
});

const RowFunctionRegistration kUnicodeSplit({
    .name = "unicode_split",
    .signature = "unicode_split(input, errors=\"replace\")",
    .doc = "The characters of a text in UTF-8, each a string, as tf.strings.unicode_split finds "
           "them.\n"
           "\n"
           "input, errors: as those of unicode_decode.",
    .bind = BindSplit,
});

}  // namespace
}  // namespace penstock::expr
