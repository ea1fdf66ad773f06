// x ** y on single values of float64 (some 200 ns where y is no small integer) and of integers:
// kernels call it lane by lane. Of float32 there are vectors (power-inl.h).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "server/kernels/x87.h"

namespace penstock::kernels {

// Natural logarithm of a positive finite value and exponential, in x87 precision, by the same
// series as transcendental-inl.h. The C library's are not used: they differ from one machine's
// instruction set to another's.
inline X87 LogExtended(X87 x) {
  int exponent;
  X87 m = std::frexp(static_cast<long double>(x), &exponent);  // in [0.5, 1)
  if (m < 0.70710678118654752440L) {
    m *= 2;
    --exponent;
  }
  const X87 s = (m - 1) / (m + 1);
  const X87 z = s * s;
  X87 sum = 0;
  for (int n = 27; n >= 3; n -= 2) sum = (sum + X87(1) / n) * z;
  return exponent * X87(0.693147180559945309417232121458176568L) + 2 * (s + s * sum);
}

inline X87 ExpExtended(X87 x) {
  if (x > 12000) return std::numeric_limits<long double>::infinity();
  if (x < -12000) return 0;
  const X87 k = std::rint(static_cast<long double>(x * 1.44269504088896340735992468100189214L));
  const X87 r = (x - k * 0.693147180369123816490L) - k * 1.90821492927058770002e-10L;
  X87 sum = 1;
  for (int n = 22; n >= 1; --n) sum = 1 + sum * r / n;
  return std::ldexp(static_cast<long double>(sum), static_cast<int>(k));
}

struct ScalarPower {
  template <typename T>
  static T Apply(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      if (y == 0 || x == 1) return 1;
      if (y == 1) return x;
      if (y == 2) return x * x;
      // A square root, also of -infinity, where the C library's power is positive.
      if (y == T(0.5) && x < 0) return std::numeric_limits<T>::quiet_NaN();
      if (y == T(0.5) && x >= 0) return std::sqrt(x);
      if (y == -1) return 1 / x;
      if (x != x || y != y) return x + y;
      const bool integral = std::floor(y) == y;
      const bool odd = integral && std::fmod(y, T(2)) != 0;
      if (std::isinf(y)) {
        const T magnitude = std::fabs(x);
        if (magnitude == 1) return 1;
        return (magnitude > 1) == (y > 0) ? std::numeric_limits<T>::infinity() : T(0);
      }
      if (x == 0 || std::isinf(x)) {
        const bool large = (x == 0) == (y < 0);
        const T magnitude = large ? std::numeric_limits<T>::infinity() : T(0);
        return odd ? std::copysign(magnitude, x) : magnitude;
      }
      if (x < 0 && !integral) return std::numeric_limits<T>::quiet_NaN();
      if (integral && std::fabs(y) < 64) return static_cast<T>(Product(x, static_cast<int>(y)));
      const X87 magnitude = ExpExtended(X87(y) * LogExtended(std::fabs(x)));
      return static_cast<T>(x < 0 && odd ? -magnitude : magnitude);
    } else {
      // A negative exponent is refused where it is a constant (server/expr/elementwise_call.cc). Of
      // the data it gives what is left of the fraction: 0, but for bases of 1 and -1.
      if constexpr (std::is_signed_v<T>) {
        if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
      }
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(BySquares(static_cast<U>(x), static_cast<U>(y)));
    }
  }

 private:
  // base ** n, n of at least 0.
  template <typename Value, typename Count>
  static Value BySquares(Value base, Count n) {
    Value result = 1;
    for (; n != 0; n >>= 1) {
      if (n & 1) result *= base;
      base *= base;
    }
    return result;
  }

  // In x87 precision.
  static X87 Product(X87 x, int n) {
    const X87 product = BySquares(x, n < 0 ? -n : n);
    return n < 0 ? 1 / product : product;
  }
};

}  // namespace penstock::kernels
