// Logarithm, exponential and powers of float64 on values whose last bit is another one in 113 bits
// than in x87's 64. The results are those of x86-64.
#include <cmath>
#include <limits>

#include "server/kernels/power.h"
#include "tests/support/catch.h"

namespace penstock::kernels {
namespace {

struct OfOne {
  double x;
  double result;
};
struct OfTwo {
  double x, y;
  double result;
};

TEST_CASE("Logarithms have x87's bits on every machine") {
  const auto [x, result] = GENERATE(OfOne{0x1.288633033e124p+5, 0x1.ce6c89f8abf24p+1},
                                    OfOne{0x1.21af45a67427p+5, 0x1.cb6fdddaf1a98p+1});
  CHECK(static_cast<double>(LogExtended(x)) == result);
}

TEST_CASE("Exponentials have x87's bits on every machine") {
  const auto [x, result] = GENERATE(OfOne{-0x1.19c661ea31bf2p+3, 0x1.3a63077fb4b5p-13},
                                    OfOne{0x1.32b0207d261d4p+2, 0x1.e22b378ffdf54p+6});
  CHECK(static_cast<double>(ExpExtended(x)) == result);
}

TEST_CASE("Powers have x87's bits on every machine") {
  const auto [x, y, result] =
      GENERATE(OfTwo{0x1.2d5f8fd474cb9p+5, -0x1.8ec9a849b12c4p+2, 0x1.4ca6e6b1573a8p-33},
               OfTwo{0x1.6c22164deeb4p+4, 0x1.0f7ead9578eeap+3, 0x1.30589eb1d73bbp+38},
               OfTwo{0x1.8a4b0a72cdd3bp+3, 6, 0x1.ab31bcc0483fdp+21},
               OfTwo{0x1.aee7a3e0c2f26p+2, 6, 0x1.6be37b4a0d2dp+16});
  CHECK(ScalarPower::Apply(x, y) == result);
}

TEST_CASE("Numbers of x87 are rounded after each operation") {
  // Half of the last of 64 bits, to the even neighbour; and a little more than that.
  const X87 last = 0x1p-63L;
  CHECK(static_cast<double>((X87(1) + last / 2) - 1) == 0);
  CHECK(static_cast<double>(((X87(1) + last) + last / 2) - 1) == 0x1p-62);
  CHECK(static_cast<double>((X87(1) + (last / 2 + last / 1024)) - 1) == 0x1p-63);
  CHECK(static_cast<double>(X87(1) / 3 * 3) == 1);
  const X87 infinite = std::numeric_limits<double>::infinity();
  CHECK(static_cast<double>(-infinite) == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(static_cast<double>(infinite - infinite)));
}

}  // namespace
}  // namespace penstock::kernels
