#include <vector>

#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  return BindEachText(arguments[0], "input", {DType::kString, {kUnknownSize}},
                      [](absl::string_view text, RowOutput& out) {
                        std::vector<absl::string_view> bytes;
                        bytes.reserve(text.size());
                        for (size_t i = 0; i < text.size(); ++i) bytes.push_back(text.substr(i, 1));
                        PutTexts(bytes, out);
                        return absl::OkStatus();
                      });
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
