// Casts between numbers as the expression language defines them: towards integers they saturate,
// drop the fraction and take NaN to 0; towards floating types they round to nearest.
#pragma once

#include <limits>
#include <type_traits>

namespace penstock::kernels {

template <typename To, typename From>
inline To SaturateCast(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<From>) {
    // 2^n bounds are exact in every floating type, unlike the largest integer.
    const From low = static_cast<From>(std::numeric_limits<To>::min());
    const From high = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    if (value != value) return 0;
    if (value < low) return std::numeric_limits<To>::min();
    if (value >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else if constexpr (std::is_same_v<From, bool>) {
    return static_cast<To>(value);
  } else {
    if constexpr (std::is_signed_v<From>) {
      if constexpr (std::is_signed_v<To>) {
        if (value < std::numeric_limits<To>::min()) return std::numeric_limits<To>::min();
      } else {
        if (value < 0) return 0;
      }
    }
    using Wide = std::conditional_t<std::is_signed_v<From> && std::is_signed_v<To>, long long,
                                    unsigned long long>;
    if (static_cast<Wide>(value) > static_cast<Wide>(std::numeric_limits<To>::max())) {
      return std::numeric_limits<To>::max();
    }
    return static_cast<To>(value);
  }
}

}  // namespace penstock::kernels
