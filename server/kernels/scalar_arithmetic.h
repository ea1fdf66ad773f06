// NumPy's arithmetic on single values, where no vector instruction does the same.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

namespace penstock::kernels {

struct ScalarMultiply {
  template <typename T>
  static T Apply(T a, T b) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
};

struct ScalarMinimum {
  template <typename T>
  static T Apply(T a, T b) {
    return a <= b ? a : b;
  }
};

struct ScalarMaximum {
  template <typename T>
  static T Apply(T a, T b) {
    return a >= b ? a : b;
  }
};

// Rounds towards minus infinity.
struct ScalarFloorDivide {
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (b == 0) return a / b;
      T remainder = std::fmod(a, b);
      // The difference is divisible, so the quotient is within a rounding of an integer.
      T quotient = (a - remainder) / b;
      if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
      if (quotient == 0) return std::copysign(T(0), a / b);
      T floor = std::floor(quotient);
      if (quotient - floor > T(0.5)) floor += 1;
      return floor;
    } else {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return ScalarMultiply::Apply(a, b);
        const T quotient = a / b;
        return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
      } else {
        return a / b;
      }
    }
  }
};

// A distance that is no number of bits of the type, such as a negative one, shifts all of them out.
struct ScalarLeftShift {
  template <typename T>
  static T Apply(T a, T distance) {
    using U = std::make_unsigned_t<T>;
    if (static_cast<U>(distance) >= std::numeric_limits<U>::digits) return 0;
    return static_cast<T>(static_cast<U>(a) << distance);
  }
};

struct ScalarRightShift {
  template <typename T>
  static T Apply(T a, T distance) {
    using U = std::make_unsigned_t<T>;
    if (static_cast<U>(distance) < std::numeric_limits<U>::digits) return a >> distance;
    if constexpr (std::is_signed_v<T>) return a < 0 ? -1 : 0;
    return 0;
  }
};

// Has the divisor's sign.
struct ScalarRemainder {
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      const T remainder = std::fmod(a, b);
      if (b == 0) return remainder;
      if (remainder == 0) return std::copysign(T(0), b);
      return (b < 0) != (remainder < 0) ? remainder + b : remainder;
    } else {
      if (b == 0 || b == static_cast<T>(-1)) {
        return b == 0 || std::is_signed_v<T> ? 0 : static_cast<T>(a % b);
      }
      const T remainder = a % b;
      return remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b : remainder;
    }
  }
};

}  // namespace penstock::kernels
