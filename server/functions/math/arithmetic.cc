// NumPy's operators and their functions.
#include "server/kernels/arithmetic.h"

#include "server/expr/function.h"

namespace penstock::expr {
namespace {

using kernels::Arithmetic;

constexpr kernels::Operation Of(Arithmetic code) {
  return {kernels::FindArithmetic, static_cast<int>(code), static_cast<int>(code)};
}
constexpr kernels::Operation Of(Arithmetic code, Arithmetic reversed) {
  return {kernels::FindArithmetic, static_cast<int>(code), static_cast<int>(reversed)};
}

const ElementwiseFunction kFamily[] = {
    {"add", "add(a, b)", "a + b. Integers wrap; bools give a | b.", 2, TypeRule::kPromote,
     Of(Arithmetic::kAdd), DType::kInvalid, "bitwise_or", "string_join"},
    {"subtract", "subtract(a, b)", "a - b. Integers wrap; bools are refused.", 2, TypeRule::kNumber,
     Of(Arithmetic::kSubtract, Arithmetic::kReverseSubtract)},
    {"multiply", "multiply(a, b)", "a * b. Integers wrap; bools give a & b.", 2, TypeRule::kPromote,
     Of(Arithmetic::kMultiply), DType::kInvalid, "bitwise_and"},
    {"divide", "divide(a, b)", "a / b, always floating: two integers give float64.", 2,
     TypeRule::kDivide, Of(Arithmetic::kDivide, Arithmetic::kReverseDivide)},
    {"floor_divide", "floor_divide(a, b)",
     "a // b, rounded towards minus infinity. An integer divided by zero gives 0.", 2,
     TypeRule::kNumber, Of(Arithmetic::kFloorDivide, Arithmetic::kReverseFloorDivide)},
    {"remainder", "remainder(a, b)", "a % b, with the sign of b. An integer by zero gives 0.", 2,
     TypeRule::kNumber, Of(Arithmetic::kRemainder, Arithmetic::kReverseRemainder)},
    {"power", "power(a, b)",
     "a ** b. Integers wrap. An integer to a constant power below 0 is refused, but for two "
     "literals: 10 ** -3 is 0.001. To such a power of the data it is 0, but for 1 and -1.",
     2, TypeRule::kPower, Of(Arithmetic::kPower, Arithmetic::kReversePower)},
    {"minimum", "minimum(a, b)", "The lesser of two, or NaN if one is NaN.", 2, TypeRule::kPromote,
     Of(Arithmetic::kMinimum)},
    {"maximum", "maximum(a, b)", "The greater of two, or NaN if one is NaN.", 2, TypeRule::kPromote,
     Of(Arithmetic::kMaximum)},
    {"fmin",
     "fmin(a, b)",
     "The lesser of two; where one is NaN the other.",
     2,
     TypeRule::kPromote,
     {kernels::FindArithmetic, static_cast<int>(Arithmetic::kFmin), -1}},
    {"fmax",
     "fmax(a, b)",
     "The greater of two; where one is NaN the other.",
     2,
     TypeRule::kPromote,
     {kernels::FindArithmetic, static_cast<int>(Arithmetic::kFmax), -1}},
    {"fmod", "fmod(a, b)", "What a / b leaves, with the sign of a; always floating.", 2,
     TypeRule::kFloating, Of(Arithmetic::kFmod, Arithmetic::kReverseFmod)},
    {"copysign", "copysign(a, b)", "a with the sign of b; always floating.", 2, TypeRule::kFloating,
     Of(Arithmetic::kCopysign, Arithmetic::kReverseCopysign)},
    {"bitwise_and", "bitwise_and(a, b)", "a & b, of integers or bools.", 2, TypeRule::kIntegral,
     Of(Arithmetic::kAnd)},
    {"bitwise_or", "bitwise_or(a, b)", "a | b, of integers or bools.", 2, TypeRule::kIntegral,
     Of(Arithmetic::kOr)},
    {"bitwise_xor", "bitwise_xor(a, b)", "a ^ b, of integers or bools.", 2, TypeRule::kIntegral,
     Of(Arithmetic::kXor)},
    {"left_shift", "left_shift(a, b)",
     "a << b, of integers. What leaves the type is gone; 0 from its number of bits on, and for b < "
     "0.",
     2, TypeRule::kInteger, Of(Arithmetic::kLeftShift, Arithmetic::kReverseLeftShift)},
    {"right_shift", "right_shift(a, b)",
     "a >> b, of integers, with the sign of a moved in. As by all bits from their number on, and "
     "for b < 0.",
     2, TypeRule::kInteger, Of(Arithmetic::kRightShift, Arithmetic::kReverseRightShift)},
};

const ElementwiseRegistration kRegistration(kFamily);

}  // namespace
}  // namespace penstock::expr
