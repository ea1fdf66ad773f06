// Comparisons, and choices by them.
#include "server/expr/function.h"
#include "server/kernels/arithmetic.h"

namespace penstock::expr {
namespace {

using kernels::Comparison;
using kernels::Test;

constexpr kernels::Operation Of(Comparison code, Comparison reversed) {
  return {kernels::FindComparison, static_cast<int>(code), static_cast<int>(reversed)};
}

constexpr kernels::Operation Of(Test code) {
  return {kernels::FindTest, static_cast<int>(code), -1};
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
    {"logical_and", "logical_and(a, b)", "Whether both are not zero; NaN is not zero.", 2,
     TypeRule::kCompare, Of(Comparison::kLogicalAnd, Comparison::kLogicalAnd)},
    {"logical_or", "logical_or(a, b)", "Whether one is not zero; NaN is not zero.", 2,
     TypeRule::kCompare, Of(Comparison::kLogicalOr, Comparison::kLogicalOr)},
    {"logical_xor", "logical_xor(a, b)", "Whether exactly one is not zero; NaN is not zero.", 2,
     TypeRule::kCompare, Of(Comparison::kLogicalXor, Comparison::kLogicalXor)},
    {"logical_not", "logical_not(x)", "Whether x is zero.", 1, TypeRule::kCompare,
     Of(Test::kLogicalNot)},
    {"isnan", "isnan(x)", "Whether x is NaN.", 1, TypeRule::kCompare, Of(Test::kIsNan)},
    {"isinf", "isinf(x)", "Whether x is infinite, of either sign.", 1, TypeRule::kCompare,
     Of(Test::kIsInf)},
    {"isfinite", "isfinite(x)", "Whether x is neither infinite nor NaN.", 1, TypeRule::kCompare,
     Of(Test::kIsFinite)},
    {"signbit", "signbit(x)", "Whether the sign is set: below zero, or -0.0.", 1,
     TypeRule::kCompare, Of(Test::kSignbit)},
    {"where",
     "where(condition, a, b)",
     "a where the condition is not zero, b elsewhere.",
     3,
     TypeRule::kSelect,
     {kernels::FindSelection, static_cast<int>(kernels::Selection::kSelect),
      static_cast<int>(kernels::Selection::kReverseSelect)}},
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
