#include "server/expr/beta_draws.h"

#include <cmath>

#include "server/kernels/power.h"

namespace penstock::expr {
namespace {

// In (0, 1).
double OpenUnit(Draws& draws) {
  return (static_cast<double>(draws.DoubleWord() >> 12) + 0.5) * 0x1p-52;
}

double Log(double x) { return static_cast<double>(kernels::LogExtended(x)); }

// A standard normal variable by Marsaglia's polar method.
double Normal(Draws& draws) {
  for (;;) {
    const double u = 2 * OpenUnit(draws) - 1, v = 2 * OpenUnit(draws) - 1;
    const double square = u * u + v * v;
    if (square < 1 && square > 0) return u * std::sqrt(-2 * Log(square) / square);
  }
}

// The logarithm of a gamma variable: G. Marsaglia, W. W. Tsang, "A Simple Method for Generating
// Gamma Variables" (2000), for shapes of at least 1; below, by Gamma(a) = Gamma(a + 1) * U^(1/a).
double LogGamma(Draws& draws, double shape) {
  double boost = 0;
  if (shape < 1) {
    boost = Log(OpenUnit(draws)) / shape;
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = Normal(draws);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (Log(OpenUnit(draws)) < 0.5 * x * x + d - d * v + d * Log(v)) return Log(d * v) + boost;
  }
}

}  // namespace

double DrawBeta(Draws& draws, double a, double b) {
  const double log_a = LogGamma(draws, a), log_b = LogGamma(draws, b);
  return 1 / (1 + static_cast<double>(kernels::ExpExtended(log_b - log_a)));
}

}  // namespace penstock::expr
