#include "server/kernels/sine.h"

#include <cmath>

#include "server/kernels/x87.h"

namespace penstock::kernels {
namespace {

// Taylor's series, to below 2^-60 of the value for |r| <= pi/4.
double SineNear(double r) {
  const double z = r * r;
  double sum = 1.0 / 355687428096000.0;
  sum = sum * z - 1.0 / 1307674368000.0;
  sum = sum * z + 1.0 / 6227020800.0;
  sum = sum * z - 1.0 / 39916800.0;
  sum = sum * z + 1.0 / 362880.0;
  sum = sum * z - 1.0 / 5040.0;
  sum = sum * z + 1.0 / 120.0;
  sum = sum * z - 1.0 / 6.0;
  return r + r * (z * sum);
}
double CosineNear(double r) {
  const double z = r * r;
  double sum = -1.0 / 6402373705728000.0;
  sum = sum * z + 1.0 / 20922789888000.0;
  sum = sum * z - 1.0 / 87178291200.0;
  sum = sum * z + 1.0 / 479001600.0;
  sum = sum * z - 1.0 / 3628800.0;
  sum = sum * z + 1.0 / 40320.0;
  sum = sum * z - 1.0 / 720.0;
  sum = sum * z + 1.0 / 24.0;
  sum = sum * z - 0.5;
  return 1.0 + z * sum;
}

// The sine of x + quarters * pi/2, if it is sure.
bool TrySine(float x, int quarters, float* result) {
  if (!(std::fabs(x) < kReducible)) return false;
  const double wide = x;
  const double multiple = std::nearbyint(wide * kTwoOverPi);
  const double r = ((wide - multiple * kHalfPi1) - multiple * kHalfPi2) - multiple * kHalfPi3;
  const int quadrant = (static_cast<int>(multiple) + quarters) & 3;
  double value = (quadrant & 1) != 0 ? CosineNear(r) : SineNear(r);
  if ((quadrant & 2) != 0) value = -value;
  const double error = std::fabs(value) * kSineError;
  *result = static_cast<float>(value - error);
  return *result == static_cast<float>(value + error);
}

}  // namespace

float SineByX87(float x) { return static_cast<float>(X87(std::sin(static_cast<long double>(x)))); }
float CosineByX87(float x) {
  return static_cast<float>(X87(std::cos(static_cast<long double>(x))));
}

double SineByX87(double x) {
  return static_cast<double>(X87(std::sin(static_cast<long double>(x))));
}
double CosineByX87(double x) {
  return static_cast<double>(X87(std::cos(static_cast<long double>(x))));
}

float SineOf(float x) {
  float result;
  // A zero has a sign.
  return x != 0 && TrySine(x, 0, &result) ? result : SineByX87(x);
}
float CosineOf(float x) {
  float result;
  return TrySine(x, 1, &result) ? result : CosineByX87(x);
}

}  // namespace penstock::kernels
