#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/in_pieces.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

template <char (*change)(unsigned char)>
absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  return BindEachText(
      arguments[0], "input", {DType::kString, {}}, [](absl::string_view text, RowOutput& out) {
        uint8_t* const to = out.Reserve(text.size());
        InPieces(text.size(), [&](size_t first, size_t some) {
          for (size_t i = first; i < first + some; ++i)
            to[i] = static_cast<uint8_t>(change(static_cast<unsigned char>(text[i])));
        });
        out.Commit();
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kStringLower({
    .name = "string_lower",
    .signature = "string_lower(input)",
    .doc = "Capital letters of ASCII made small, as tf.strings.lower does.\n"
           "\n"
           "input: a string, or a tensor of strings. All other bytes stay, those of UTF-8, too.",
    .bind = Bind<absl::ascii_tolower>,
});

const RowFunctionRegistration kStringUpper({
    .name = "string_upper",
    .signature = "string_upper(input)",
    .doc = "Small letters of ASCII made capital, as tf.strings.upper does.\n"
           "\n"
           "input: a string, or a tensor of strings. All other bytes stay, those of UTF-8, too.",
    .bind = Bind<absl::ascii_toupper>,
});

}  // namespace
}  // namespace penstock::expr
