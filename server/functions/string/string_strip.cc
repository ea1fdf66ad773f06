#include "absl/strings/ascii.h"
#include "base/in_pieces.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

// As absl::StripAsciiWhitespace().
absl::string_view Stripped(absl::string_view text) {
  const auto is_in_text = [](char c) {
    return !absl::ascii_isspace(static_cast<unsigned char>(c));
  };
  text.remove_prefix(FindInPieces(text, 0, is_in_text));
  StopLook look;
  while (!text.empty() && !is_in_text(text.back())) {
    look.Did(1);
    text.remove_suffix(1);
  }
  return text;
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  return BindEachText(arguments[0], "input", {DType::kString, {}},
                      [](absl::string_view text, RowOutput& out) {
                        PutText(Stripped(text), out);
                        return absl::OkStatus();
                      });
}

const RowFunctionRegistration kStringStrip({
    .name = "string_strip",
    .signature = "string_strip(input)",
    .doc = "The text without the white space of ASCII at its beginning and its end, as "
           "tf.strings.strip does.\n"
           "\n"
           "input: a string, or a tensor of strings.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
