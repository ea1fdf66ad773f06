#include "server/codec/number_text.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  return BindEachText(arguments[0], "input", {DType::kString, {}},
                      [](absl::string_view text, RowOutput& out) {
                        PutText(WithoutSpaces(text), out);
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
