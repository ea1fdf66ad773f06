#include <vector>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/large_charge.h"
#include "server/expr/each_string.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

absl::Status Split(absl::string_view text, RowOutput& out) {
  // Before there is a view of each: those take four times as much.
  const uint64_t bytes_max = kEachStringBytesMax / (sizeof(uint32_t) + 1);
  if (text.size() > bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("text larger than the limit: ", text.size(), " > ", bytes_max, " bytes"));
  }
  LargeCharge charge;
  std::vector<absl::string_view> bytes;
  charge.MakeRoom(bytes, text.size());
  InPieces(text.size(), [&](size_t first, size_t some) {
    for (size_t i = first; i < first + some; ++i) bytes.push_back(text.substr(i, 1));
  });
  return PutTexts(bytes, out);
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  return BindEachText(arguments[0], "input", {DType::kString, {kUnknownSize}}, Split);
}

const RowFunctionRegistration kRegistration({
    .name = "bytes_split",
    .signature = "bytes_split(input)",
    .doc =
        "The bytes of a text, each a string, as tf.strings.bytes_split gives them. Characters are "
        "unicode_split's.\n"
        "\n"
        "input: a string, which becomes a tensor of strings, (n,); or a tensor of strings, "
        "all as long, (..., n).",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
