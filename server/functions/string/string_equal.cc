#include <string>

#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

template <bool equal>
absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  return BindEachPair(arguments.first(2), "x", "y", DType::kBool,
                      [](absl::string_view x, absl::string_view y, std::string* out) {
                        out->push_back((x == y) == equal ? 1 : 0);
                      });
}

const RowFunctionRegistration kStringEqual({
    .name = "string_equal",
    .signature = "string_equal(x, y)",
    .doc =
        "Whether two texts have the same bytes: what `x == y` is of strings.\n"
        "\n"
        "x, y: strings, tensors of strings of one shape, or constants; at least one no constant. "
        "A string is compared with each of the other's.",
    .bind = Bind<true>,
});

const RowFunctionRegistration kStringNotEqual({
    .name = "string_not_equal",
    .signature = "string_not_equal(x, y)",
    .doc = "Whether two texts have different bytes: what `x != y` is of strings.\n"
           "\n"
           "x, y: as those of string_equal.",
    .bind = Bind<false>,
});

}  // namespace
}  // namespace penstock::expr
