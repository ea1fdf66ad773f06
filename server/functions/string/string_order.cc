// Strings before and behind one another, by their bytes.
#include <string>

#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

enum class Order { kLess, kLessEqual, kGreater, kGreaterEqual };

template <Order order>
bool Holds(absl::string_view x, absl::string_view y) {
  // Bytes are compared as unsigned numbers; of two texts of which one begins with the other the
  // shorter one is less.
  const int found = x.compare(y);
  switch (order) {
    case Order::kLess:
      return found < 0;
    case Order::kLessEqual:
      return found <= 0;
    case Order::kGreater:
      return found > 0;
    case Order::kGreaterEqual:
      return found >= 0;
  }
}

template <Order order>
absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  return BindEachPair(arguments.first(2), "x", "y", DType::kBool,
                      [](absl::string_view x, absl::string_view y, std::string* out) {
                        out->push_back(Holds<order>(x, y) ? 1 : 0);
                      });
}

const RowFunctionRegistration kStringLess({
    .name = "string_less",
    .signature = "string_less(x, y)",
    .doc =
        "Whether a text comes before another by its bytes: what `x < y` is of strings.\n"
        "\n"
        "x, y: as those of string_equal. NumPy's order of bytes; TensorFlow has none of strings.",
    .bind = Bind<Order::kLess>,
});

const RowFunctionRegistration kStringLessEqual({
    .name = "string_less_equal",
    .signature = "string_less_equal(x, y)",
    .doc = "What `x <= y` is of strings.\n"
           "\n"
           "x, y: as those of string_less.",
    .bind = Bind<Order::kLessEqual>,
});

const RowFunctionRegistration kStringGreater({
    .name = "string_greater",
    .signature = "string_greater(x, y)",
    .doc = "What `x > y` is of strings.\n"
           "\n"
           "x, y: as those of string_less.",
    .bind = Bind<Order::kGreater>,
});

const RowFunctionRegistration kStringGreaterEqual({
    .name = "string_greater_equal",
    .signature = "string_greater_equal(x, y)",
    .doc = "What `x >= y` is of strings.\n"
           "\n"
           "x, y: as those of string_less.",
    .bind = Bind<Order::kGreaterEqual>,
});

}  // namespace
}  // namespace penstock::expr
