#include <string>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/expr/arguments.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  std::string separator;
  if (absl::Status status = ReadConstant(arguments[2], "separator", &separator); !status.ok())
    return status;
  return BindEachPair(arguments.first(2), "a", "b", DType::kString,
                      [separator](absl::string_view a, absl::string_view b, std::string* out) {
                        MakeRoomFor(a.size() + separator.size() + b.size(), out);
                        AppendInPieces(out, a);
                        out->append(separator);
                        AppendInPieces(out, b);
                      });
}

const RowFunctionRegistration kStringJoin({
    .name = "string_join",
    .signature = "string_join(a, b, separator=\"\")",
    .doc =
        "One text after another, as tf.strings.join joins two.\n"
        "\n"
        "a, b: strings, tensors of strings of one shape, or constants; at least one no constant. "
        "A string belongs to each of the other's.\n"
        "separator: what comes between them, a constant.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
