// NumPy's rarer functions of one and two numbers.
#include "server/kernels/extended_math.h"

#include "server/expr/function.h"

namespace penstock::expr {
namespace {

using kernels::Extended;
using kernels::ExtendedPair;

constexpr ElementwiseFunction One(std::string_view name, std::string_view signature,
                                  std::string_view doc, Extended code) {
  return {name, signature,           doc,
          1,    TypeRule::kFloating, {kernels::FindExtended, static_cast<int>(code), -1}};
}
constexpr ElementwiseFunction Two(std::string_view name, std::string_view signature,
                                  std::string_view doc, ExtendedPair code, ExtendedPair reversed) {
  return {name,
          signature,
          doc,
          2,
          TypeRule::kFloating,
          {kernels::FindExtendedPair, static_cast<int>(code), static_cast<int>(reversed)}};
}

const ElementwiseFunction kFamily[] = {
    One("sin", "sin(x)",
        "The sine of radians, rounded once: 2 to 5 ns a value, above 524288 some 150.",
        Extended::kSin),
    One("cos", "cos(x)",
        "The cosine of radians, rounded once: 2 to 5 ns a value, above 524288 some 150.",
        Extended::kCos),
    One("tan", "tan(x)", "The tangent of radians. Rounded once; some 50 ns a value.",
        Extended::kTan),
    One("arcsin", "arcsin(x)", "The inverse sine, in radians; NaN outside of -1 to 1.",
        Extended::kArcsin),
    One("arccos", "arccos(x)", "The inverse cosine, in radians; NaN outside of -1 to 1.",
        Extended::kArccos),
    One("arctan", "arctan(x)", "The inverse tangent, in radians.", Extended::kArctan),
    One("sinh", "sinh(x)", "The hyperbolic sine.", Extended::kSinh),
    One("cosh", "cosh(x)", "The hyperbolic cosine.", Extended::kCosh),
    One("arcsinh", "arcsinh(x)", "The inverse hyperbolic sine.", Extended::kArcsinh),
    One("arccosh", "arccosh(x)", "The inverse hyperbolic cosine; NaN below 1.", Extended::kArccosh),
    One("arctanh", "arctanh(x)", "The inverse hyperbolic tangent; NaN outside of -1 to 1.",
        Extended::kArctanh),
    One("exp2", "exp2(x)", "2 ** x.", Extended::kExp2),
    One("expm1", "expm1(x)", "exp(x) - 1, exact for small x.", Extended::kExpm1),
    One("log2", "log2(x)", "The logarithm to base 2.", Extended::kLog2),
    One("log10", "log10(x)", "The logarithm to base 10.", Extended::kLog10),
    One("cbrt", "cbrt(x)", "The cube root, of negative numbers too.", Extended::kCbrt),
    Two("arctan2", "arctan2(y, x)", "The angle of the point (x, y), in radians from -pi to pi.",
        ExtendedPair::kArctan2, ExtendedPair::kReverseArctan2),
    Two("hypot", "hypot(a, b)", "sqrt(a * a + b * b) without overflow.", ExtendedPair::kHypot,
        ExtendedPair::kHypot),
    Two("logaddexp", "logaddexp(a, b)", "log(exp(a) + exp(b)) without overflow.",
        ExtendedPair::kLogaddexp, ExtendedPair::kLogaddexp),
};

const ElementwiseRegistration kRegistration(kFamily);

}  // namespace
}  // namespace penstock::expr
