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

// One that looks at the order of its arguments; the flags are ElementwiseFunction's.
constexpr ElementwiseFunction InOrder(std::string_view name, std::string_view signature,
                                      std::string_view doc, kernels::Operation operation,
                                      std::string_view of_strings, bool of_lesser,
                                      bool of_greater) {
  return {name, signature,  doc,       2,         TypeRule::kCompare, operation, DType::kInvalid,
          {},   of_strings, of_lesser, of_greater};
}

const ElementwiseFunction kFamily[] = {
    InOrder("equal", "equal(a, b)", "a == b.", Of(Comparison::kEqual, Comparison::kEqual),
            "string_equal", false, false),
    InOrder("not_equal", "not_equal(a, b)", "a != b.",
            Of(Comparison::kNotEqual, Comparison::kNotEqual), "string_not_equal", true, true),
    InOrder("less", "less(a, b)", "a < b.", Of(Comparison::kLess, Comparison::kGreater),
            "string_less", true, false),
    InOrder("less_equal", "less_equal(a, b)", "a <= b.",
            Of(Comparison::kLessEqual, Comparison::kGreaterEqual), "string_less_equal", true,
            false),
    InOrder("greater", "greater(a, b)", "a > b.", Of(Comparison::kGreater, Comparison::kLess),
            "string_greater", false, true),
    InOrder("greater_equal", "greater_equal(a, b)", "a >= b.",
            Of(Comparison::kGreaterEqual, Comparison::kLessEqual), "string_greater_equal", false,
            true),
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
      static_cast<int>(kernels::Selection::kReverseSelect)},
     DType::kInvalid,
     {},
     "string_where"},
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
