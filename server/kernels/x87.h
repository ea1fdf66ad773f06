// Numbers of x87's extended precision, 64 bits of mantissa, on each machine: the same operations
// give the same bits.
//
// Threads:  any; values.
// Cost:     on x86-64 the processor's own. On arm64, whose long double has 113 bits and no
//           instructions, a call of the compiler's library for each operation.
#pragma once

#if defined(__x86_64__)

namespace penstock::kernels {

using X87 = long double;

}  // namespace penstock::kernels

#else

#include <bit>
#include <limits>

namespace penstock::kernels {

// A number of 113 bits that is rounded to 64 after each operation. To round twice gives another
// number than to round once where the 49 bits between happen to be those of a half: not once in
// 10^14 operations.
class X87 {
 public:
  X87(long double value) : value_(Rounded(value)) {}

  template <typename T>
  explicit operator T() const {
    return static_cast<T>(value_);
  }

  friend X87 operator+(X87 a, X87 b) { return a.value_ + b.value_; }
  friend X87 operator-(X87 a, X87 b) { return a.value_ - b.value_; }
  friend X87 operator*(X87 a, X87 b) { return a.value_ * b.value_; }
  friend X87 operator/(X87 a, X87 b) { return a.value_ / b.value_; }
  friend bool operator<(X87 a, X87 b) { return a.value_ < b.value_; }
  friend bool operator>(X87 a, X87 b) { return a.value_ > b.value_; }
  X87 operator-() const { return -value_; }
  X87& operator*=(X87 other) { return *this = *this * other; }

 private:
  static_assert(std::numeric_limits<long double>::digits == 113);

  // To the nearest; of two that are equally near, the even one. Infinities and NaNs stay.
  static long double Rounded(long double value) {
    using Bits = unsigned __int128;
    constexpr Bits kBelow = (Bits{1} << 49) - 1, kHalf = Bits{1} << 48;
    const auto bits = std::bit_cast<Bits>(value);
    // A NaN may have all bits set, and would be counted on to a zero.
    if (value != value) return value;
    const Bits odd = (bits >> 49) & 1;
    return std::bit_cast<long double>((bits + kHalf - 1 + odd) & ~kBelow);
  }

  long double value_;
};

}  // namespace penstock::kernels

#endif
