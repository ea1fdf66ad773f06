// x ** y of float32: the true value's rounding, by x87 and exact special values, on every
// instruction set.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "server/kernels/image_arithmetic.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

namespace penstock::testing {
namespace {

// The C library's, but for NumPy's square roots.
float Truth(float x, float y) {
  if (y == 0.5F) return x < 0 ? std::numeric_limits<float>::quiet_NaN() : std::sqrt(x);
  return static_cast<float>(std::pow(static_cast<long double>(x), static_cast<long double>(y)));
}

bool HasBits(float found, float expected) {
  return std::bit_cast<uint32_t>(found) == std::bit_cast<uint32_t>(expected) ||
         (std::isnan(found) && std::isnan(expected));
}

void CheckPowers(const std::vector<float>& x, float y) {
  std::vector<float> found(x.size());
  kernels::PowerOfAll(x.data(), x.size(), y, 1, found.data());
  for (size_t i = 0; i < x.size(); ++i) {
    if (HasBits(found[i], Truth(x[i], y))) continue;
    CAPTURE(x[i], y, found[i], Truth(x[i], y));
    FAIL("other bits");
  }
}

TEST_CASE("A power of float32 is the true value, rounded") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {0.0F,
                                      -0.0F,
                                      1.0F,
                                      -1.0F,
                                      0.5F,
                                      -0.5F,
                                      2.0F,
                                      -3.0F,
                                      257.0F,
                                      kInfinity,
                                      -kInfinity,
                                      std::numeric_limits<float>::quiet_NaN(),
                                      std::numeric_limits<float>::min(),
                                      std::numeric_limits<float>::denorm_min(),
                                      -std::numeric_limits<float>::denorm_min(),
                                      std::numeric_limits<float>::max(),
                                      std::numeric_limits<float>::lowest(),
                                      std::nextafter(1.0F, 2.0F),
                                      std::nextafter(1.0F, 0.0F)};
  std::vector<float> exponents = {0.25F, -0.5F, 1.7F,        2.2F,      1 / 2.2F, -2.5F,
                                  63.0F, 64.0F, 65.0F,       1e10F,     -1e10F,   1e-9F,
                                  0.1F,  30.5F, 16777216.0F, 8388609.0F};
  for (int n = -20; n <= 20; ++n) exponents.push_back(static_cast<float>(n));
  exponents.insert(exponents.end(), special.begin(), special.end());
  std::mt19937 random(11);
  ForEachInstructionSet([&](const char*) {
    for (const float y : exponents) {
      std::vector<float> x = special;
      for (int i = 0; i < 500; ++i) {
        x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));  // of all magnitudes
        x.push_back(static_cast<float>(random()) / 0x1p32F);
        x.push_back(static_cast<float>(random() % 300));
      }
      CheckPowers(x, y);
    }
  });
}

}  // namespace
}  // namespace penstock::testing
