// Functions of one number.
#include "server/expr/function.h"
#include "server/kernels/arithmetic.h"

namespace penstock::expr {
namespace {

using kernels::Simple;
using kernels::Transcendental;

constexpr kernels::Operation Of(Simple code) {
  return {kernels::FindUnary, static_cast<int>(code), -1};
}
constexpr kernels::Operation Of(Transcendental code) {
  return {kernels::FindTranscendental, static_cast<int>(code), -1};
}

const ElementwiseFunction kFamily[] = {
    {"negative", "negative(x)", "-x. Integers wrap; bools are refused.", 1, TypeRule::kNumber,
     Of(Simple::kNegative)},
    {"invert", "invert(x)", "~x: all bits turned over; of a bool, its opposite.", 1,
     TypeRule::kIntegral, Of(Simple::kInvert), DType::kInvalid, "equal"},
    {"abs", "abs(x)", "The absolute value. That of the least integer wraps to itself.", 1,
     TypeRule::kPromote, Of(Simple::kAbsolute)},
    {"sign", "sign(x)", "-1, 0 or 1; NaN of NaN.", 1, TypeRule::kNumber, Of(Simple::kSign)},
    {"sqrt", "sqrt(x)", "The square root, correctly rounded.", 1, TypeRule::kFloating,
     Of(Simple::kSqrt)},
    {"floor", "floor(x)", "The next integer below. Integers stay as they are.", 1, TypeRule::kRound,
     Of(Simple::kFloor)},
    {"ceil", "ceil(x)", "The next integer above. Integers stay as they are.", 1, TypeRule::kRound,
     Of(Simple::kCeil)},
    {"trunc", "trunc(x)", "The next integer towards zero. Integers stay as they are.", 1,
     TypeRule::kRound, Of(Simple::kTrunc)},
    {"rint", "rint(x)", "The nearest integer, halves to even; always floating.", 1,
     TypeRule::kFloating, Of(Simple::kRint)},
    {"square", "square(x)", "x * x. Integers wrap.", 1, TypeRule::kNumber, Of(Simple::kSquare)},
    {"reciprocal", "reciprocal(x)", "1 / x, always floating.", 1, TypeRule::kFloating,
     Of(Simple::kReciprocal)},
    {"exp", "exp(x)", "The exponential, within 3 units in the last place.", 1, TypeRule::kFloating,
     Of(Transcendental::kExp)},
    {"log", "log(x)", "The natural logarithm, within 3 units in the last place.", 1,
     TypeRule::kFloating, Of(Transcendental::kLog)},
    {"log1p", "log1p(x)",
     "The natural logarithm of 1 + x, exact for small x, within 3 units in the last place.", 1,
     TypeRule::kFloating, Of(Transcendental::kLog1p)},
    {"tanh", "tanh(x)", "The hyperbolic tangent, within 3 units in the last place.", 1,
     TypeRule::kFloating, Of(Transcendental::kTanh)},
};

const ElementwiseRegistration kRegistration(kFamily);

}  // namespace
}  // namespace penstock::expr
