// Pixels between pixels against their scalar twins, on every instruction set, in images between
// pages that may not be touched.
#include "server/kernels/mix_pixels.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/instruction_sets.h"

namespace penstock::kernels {
namespace {

using testing::GuardedMemory;
using Mix = void (*)(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
                     uint8_t* out);

// The first place that is asked for.
constexpr int64_t kFirst = 3;

// `before` and `behind`: how many pixels around a place are looked at.
void Check(Mix mix, Mix scalar, size_t before, size_t behind) {
  std::mt19937 random(5);
  testing::ForEachInstructionSet([&](const char*) {
    for (const size_t channels : {3, 4}) {
      for (size_t count = 0; count < 40; ++count) {
        CAPTURE(channels, count);
        const size_t height = before + behind + 2 + random() % 9;
        const size_t width = before + behind + 1 + random() % 9;
        const GuardedMemory pixels(height * width * channels);
        for (size_t i = 0; i < height * width * channels; ++i)
          pixels.data()[i] =
              static_cast<uint8_t>(random() % 3 == 0 ? 255 * (random() % 2) : random());
        // In parts of a pixel, of which sums and products are exact; whole numbers are among them.
        const auto draw = [&](size_t size, double* step, double* start) {
          constexpr double kParts = 64;
          const auto least = static_cast<double>(before) * kParts;
          const auto places = static_cast<uint32_t>((size - before - behind) * kParts);
          const double first = least + random() % places, last = least + random() % places;
          *step = std::trunc((last - first) / std::max<double>(1, static_cast<double>(count) - 1)) /
                  kParts;
          *start = first / kParts + 0.5 - *step * (kFirst + 0.5);
        };
        PixelLine line;
        draw(width, &line.step_x, &line.start_x);
        draw(height - 1, &line.step_y, &line.start_y);
        const int64_t end = kFirst + static_cast<int64_t>(count);
        const PixelGrid grid = {pixels.data(), width * channels, channels};
        const GuardedMemory out(count * channels + 1);
        std::vector<uint8_t> want(count * channels);
        scalar(grid, line, kFirst, end, want.data());
        mix(grid, line, kFirst, end, out.data());
        REQUIRE(out.BeginsWith(want));
      }
    }
  });
}

TEST_CASE("Pixels between four pixels") { Check(MixBilinear, MixBilinearScalar, 0, 1); }

TEST_CASE("Pixels between sixteen pixels") { Check(MixBicubic, MixBicubicScalar, 1, 2); }

}  // namespace
}  // namespace penstock::kernels
