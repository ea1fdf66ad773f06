// Blends of bytes against their scalar twins, on every instruction set, at all tail lengths, with
// nothing to read or write around them.
#include "server/kernels/byte_blend.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/instruction_sets.h"

namespace penstock::kernels {
namespace {

using testing::GuardedMemory;

void Draw(std::mt19937& random, const GuardedMemory& memory, size_t count) {
  // The ends of the range more often than chance would give them.
  std::generate_n(memory.data(), count, [&] {
    const auto value = random();
    return static_cast<uint8_t>(value % 5 == 0 ? 0 : value % 5 == 1 ? 255 : value >> 8);
  });
}

constexpr float kFactors[] = {0.0F, 1.0F, 0.1F, 0.73F, 1.9F, -0.4F, 3e38F, -3e38F};

TEST_CASE("Bytes between bytes and beyond them") {
  std::mt19937 random(1);
  testing::ForEachInstructionSet([&](const char*) {
    for (const float factor : kFactors) {
      for (size_t count = 0; count < 150; ++count) {
        CAPTURE(factor, count);
        const GuardedMemory from(count), to(count), out(count);
        Draw(random, from, count);
        Draw(random, to, count);
        std::vector<uint8_t> want(count);
        BlendBytesScalar(from.data(), to.data(), count, factor, want.data());
        BlendBytes(from.data(), to.data(), count, factor, out.data());
        REQUIRE(out.BeginsWith(want));
        const auto value = static_cast<uint8_t>(random());
        std::vector<uint8_t> want_from(count);
        BlendFromScalar(value, to.data(), count, factor, want_from.data());
        BlendFrom(value, to.data(), count, factor, out.data());
        REQUIRE(out.BeginsWith(want_from));
        BlendBytes(from.data(), to.data(), count, factor, to.data());
        REQUIRE(to.BeginsWith(want));
      }
    }
  });
}

TEST_CASE("Pixels between their grey and beyond it, and the sum of greys") {
  std::mt19937 random(2);
  testing::ForEachInstructionSet([&](const char*) {
    for (const float factor : kFactors) {
      for (size_t count = 0; count < 150; ++count) {
        CAPTURE(factor, count);
        const GuardedMemory pixels(3 * count), out(3 * count);
        Draw(random, pixels, 3 * count);
        std::vector<uint8_t> want(3 * count);
        BlendWithGreyScalar(pixels.data(), count, factor, want.data());
        BlendWithGrey(pixels.data(), count, factor, out.data());
        REQUIRE(out.BeginsWith(want));
        REQUIRE(SumOfGreys(pixels.data(), count) == SumOfGreysScalar(pixels.data(), count));
      }
    }
  });
}

TEST_CASE("Bytes inverted and masked") {
  std::mt19937 random(4);
  testing::ForEachInstructionSet([&](const char*) {
    for (const int number : {0, 1, 100, 127, 128, 200, 255}) {
      const auto value = static_cast<uint8_t>(number);
      for (size_t count = 0; count < 150; ++count) {
        CAPTURE(number, count);
        const GuardedMemory in(count), out(count);
        Draw(random, in, count);
        std::vector<uint8_t> want(count);
        InvertBytesScalar(in.data(), count, value, want.data());
        InvertBytes(in.data(), count, value, out.data());
        REQUIRE(out.BeginsWith(want));
        MaskBytesScalar(in.data(), count, value, want.data());
        MaskBytes(in.data(), count, value, out.data());
        REQUIRE(out.BeginsWith(want));
      }
    }
  });
}

TEST_CASE("The sum of very many greys") {
  // More than 32 bits hold.
  constexpr size_t kPixels = (size_t{1} << 32) / 255 + 12'345;
  const std::vector<uint8_t> white(3 * kPixels, 255);
  CHECK(SumOfGreys(white.data(), kPixels) == 255 * kPixels);
}

TEST_CASE("Smoothed rows") {
  std::mt19937 random(3);
  testing::ForEachInstructionSet([&](const char*) {
    for (const size_t channels : {1, 3, 4, 7}) {
      for (size_t count = 0; count < 150; ++count) {
        CAPTURE(channels, count);
        const size_t bytes = count + 2 * channels;
        const GuardedMemory above(bytes), row(bytes), below(bytes), out(count);
        for (const GuardedMemory* line : {&above, &row, &below}) Draw(random, *line, bytes);
        std::vector<uint8_t> want(count);
        SmoothBytesScalar(above.data() + channels, row.data() + channels, below.data() + channels,
                          count, channels, want.data());
        SmoothBytes(above.data() + channels, row.data() + channels, below.data() + channels, count,
                    channels, out.data());
        REQUIRE(out.BeginsWith(want));
      }
    }
  });
}

TEST_CASE("A sum divided by 13 is rounded as Pillow rounds it, whatever the sum") {
  for (unsigned sum = 0; sum <= 13 * 255; ++sum) {
    // The neighbours and the value itself, of which the sum is made.
    uint8_t lines[3][16 + 2] = {};
    unsigned left = sum;
    const unsigned centre = std::min(255U, left / 5);
    left -= 5 * centre;
    for (uint8_t(&line)[18] : lines) {
      for (size_t x = 0; x < 3; ++x) {
        if (&line == &lines[1] && x == 1) continue;
        line[x] = static_cast<uint8_t>(std::min(255U, left));
        left -= line[x];
      }
    }
    lines[1][1] = static_cast<uint8_t>(centre);
    REQUIRE(left == 0);
    uint8_t out[16];
    SmoothBytes(lines[0] + 1, lines[1] + 1, lines[2] + 1, 16, 1, out);
    REQUIRE(out[0] == static_cast<uint8_t>(static_cast<float>(sum) / 13 + 0.5F));
  }
}

}  // namespace
}  // namespace penstock::kernels
