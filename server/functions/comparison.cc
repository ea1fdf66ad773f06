// Comparisons, and choices by them.
#include "server/expr/function.h"
#include "server/kernels/arithmetic.h"

namespace penstock::expr {
namespace {

using kernels::Comparison;

constexpr kernels::Operation Of(Comparison code, Comparison reversed) {
  return {kernels::FindComparison, static_cast<int>(code), static_cast<int>(reversed)};
}

const ElementwiseFunction kFamily[] = {
    {"equal", "equal(a, b)", "a == b.", 2, TypeRule::kCompare,
     Of(Comparison::kEqual, Comparison::kEqual)},
    {"not_equal", "not_equal(a, b)", "a != b.", 2, TypeRule::kCompare,
     Of(Comparison::kNotEqual, Comparison::kNotEqual)},
    {"less", "less(a, b)", "a < b.", 2, TypeRule::kCompare,
     Of(Comparison::kLess, Comparison::kGreater)},
    {"less_equal", "less_equal(a, b)", "a <= b.", 2, TypeRule::kCompare,
     Of(Comparison::kLessEqual, Comparison::kGreaterEqual)},
    {"greater", "greater(a, b)", "a > b.", 2, TypeRule::kCompare,
     Of(Comparison::kGreater, Comparison::kLess)},
    {"greater_equal", "greater_equal(a, b)", "a >= b.", 2, TypeRule::kCompare,
     Of(Comparison::kGreaterEqual, Comparison::kLessEqual)},
    {"where",
     "where(condition, a, b)",
     "a where the condition is not zero, b elsewhere.",
     3,
     TypeRule::kSelect,
     {kernels::FindSelection, static_cast<int>(kernels::Selection::kSelect), -1}},
    {"clip",
     "clip(x, low, high)",
     "minimum(maximum(x, low), high).",
     3,
     TypeRule::kPromote,
     {kernels::FindSelection, static_cast<int>(kernels::Selection::kClip), -1}},
};

const ElementwiseRegistration kRegistration(kFamily);

}  // namespace
}  // namespace penstock::expr
