// The bits of sine and cosine: those of extended precision, rounded once, for floats of every
// magnitude.
#include "server/kernels/sine.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

bool HasBits(float found, float expected) {
  return std::bit_cast<uint32_t>(found) == std::bit_cast<uint32_t>(expected) ||
         (std::isnan(found) && std::isnan(expected));
}

void Check(float x) {
  if (HasBits(kernels::SineOf(x), kernels::SineByX87(x)) &&
      HasBits(kernels::CosineOf(x), kernels::CosineByX87(x))) {
    return;
  }
  CAPTURE(x, std::bit_cast<uint32_t>(x));
  CHECK(kernels::SineOf(x) == kernels::SineByX87(x));
  CHECK(kernels::CosineOf(x) == kernels::CosineByX87(x));
  FAIL("other bits");
}

TEST_CASE("Sine and cosine have the bits of extended precision") {
  // Every 5003rd float, of both signs.
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 5003)
    Check(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  // Where the result is near zero, and where the reduction changes its multiple.
  for (int eighth = -100000; eighth <= 100000; ++eighth) {
    const auto x = static_cast<float>(eighth * 0.78539816339744831);
    for (const float near : {std::nextafter(x, -1e9f), x, std::nextafter(x, 1e9f)}) Check(near);
  }
  for (const float x : {0.0f, -0.0f, std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN(), 524287.97f, 524288.0f, -524288.0f,
                        std::numeric_limits<float>::denorm_min(), 16367173.0f, 1e38f}) {
    Check(x);
  }
}

}  // namespace
}  // namespace penstock::testing
