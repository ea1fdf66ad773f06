// How far drawn values are from the distribution that they should have.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace penstock::testing {

// The greatest distance of the values' distribution from `cumulative` (Kolmogorov and Smirnov),
// times the root of their number.
inline double Distance(std::vector<double> values, double (*cumulative)(double)) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double greatest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = cumulative(values[i]);
    greatest = std::max({greatest, std::fabs(expected - static_cast<double>(i) / n),
                         std::fabs(static_cast<double>(i + 1) / n - expected)});
  }
  return greatest * std::sqrt(n);
}

inline constexpr double kFarthest = 2.7;  // 2 exp(-2 x^2) is 1e-6

}  // namespace penstock::testing
