#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/utf8.h"
#include "server/expr/arguments.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

constexpr int64_t kPlaceMax = int64_t{1} << 40;

// As TensorFlow counts them: bytes in front of the first character that continue none are one, too.
int64_t CountCharacters(absl::string_view text) {
  const bool begins_amid = !text.empty() && ContinuesUtf8(text[0]);
  size_t count = begins_amid ? 1 : 0;
  InPieces(text.size(),
           [&](size_t first, size_t some) { count += CountUtf8(text.substr(first, some)); });
  return static_cast<int64_t>(count);
}

// Where character number `number` begins; behind the last one the end.
size_t PlaceOf(absl::string_view text, int64_t number, bool counts_characters) {
  if (!counts_characters) return static_cast<size_t>(number);
  size_t at = 0;
  StopLook look;
  for (; number > 0 && at < text.size(); --number) {
    look.Did(1);
    at = FindInPieces(text, at + 1, [](char byte) { return !ContinuesUtf8(byte); });
  }
  return at;
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t pos = 0, len = 0;
  std::string unit = "BYTE";
  absl::Status status = FirstError({ReadConstant(arguments[1], "pos", -kPlaceMax, kPlaceMax, &pos),
                                    ReadConstant(arguments[2], "len", 0, kPlaceMax, &len),
                                    ReadConstant(arguments[3], "unit", &unit)});
  if (!status.ok()) return status;
  if (unit != "BYTE" && unit != "UTF8_CHAR") {
    return WrongArgument("unit", "\"BYTE\" or \"UTF8_CHAR\"");
  }
  return BindEachText(
      arguments[0], "input", {DType::kString, {}},
      [pos, len, by_characters = unit != "BYTE"](absl::string_view text, RowOutput& out) {
        const int64_t length =
            by_characters ? CountCharacters(text) : static_cast<int64_t>(text.size());
        if (pos > length || pos < -length) {
          return absl::DataLossError(
              absl::StrCat("pos lies outside of the text: ", pos, " of ", length));
        }
        const int64_t first = pos < 0 ? pos + length : pos;
        const int64_t end = first + std::min(len, length - first);
        const size_t begin = PlaceOf(text, first, by_characters);
        PutText(text.substr(begin, PlaceOf(text, end, by_characters) - begin), out);
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kSubstr({
    .name = "substr",
    .signature = "substr(input, pos, len, unit=\"BYTE\")",
    .doc = "A part of a text, as tf.strings.substr cuts it.\n"
           "\n"
           "input: a string, or a tensor of strings.\n"
           "pos: where it begins, from 0 on, or from the end where it is negative; a constant. "
           "Outside of the text it is an error of its record.\n"
           "len: how long it is at most, a constant; a text that ends before gives less.\n"
           "unit: \"BYTE\" or \"UTF8_CHAR\", a constant.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
