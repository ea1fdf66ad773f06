// What is written past the caches has the bytes of what is written through them, wherever it lies.
#include <cstring>

#include "tests/functions/random/drawn_rows.h"
#include "tests/support/instruction_sets.h"

namespace penstock::testing {
namespace {

TEST_CASE("Results past the caches have the same bytes, at aligned and at other places") {
  const TestImage image(23, 31);
  constexpr size_t kRows = 3;
  constexpr size_t kLine = 64;
  ForEachInstructionSet([&](const char* set) {
    for (const char* const text :
         {"y = (resize(image, [40, 48]) - [3, 4, 5]) / [6, 7, 8]",
          "y = 2 * resize(image, [41, 47]) - 1", "y = uint8(resize(image, [20, 16]) / 2)",
          "y = float64(resize(image, [16, 16])) / 3",
          // Without a function that gives tiles there is nothing to write in another way.
          "y = float32(image) * 2"}) {
      CAPTURE(set, text);
      const auto program = CompileDrawing({text}, "map", image);
      INFO(program.status().ToString());
      REQUIRE(program.ok());
      const size_t bytes = kRows * *NumBytes((*program)->output()[0].type);
      std::vector<uint8_t> pixels;
      for (size_t row = 0; row < kRows; ++row)
        pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
      pixels.resize(pixels.size() + 64);
      const std::vector<Column> in = {{pixels.data(), image.pixels.size(), nullptr}};
      for (const size_t place : {0, 4, 32, 60}) {
        CAPTURE(place);
        std::vector<uint8_t> made[2];
        for (const bool past_caches : {false, true}) {
          std::vector<uint8_t> memory(bytes + 3 * kLine, 0x5a);
          uint8_t* const aligned =
              memory.data() + (kLine - reinterpret_cast<uintptr_t>(memory.data()) % kLine) % kLine;
          uint8_t* const out = aligned + place;
          Column columns[] = {{out, bytes / kRows, nullptr}};
          Arena arena;
          REQUIRE((*program)->Run(kRows, in, columns, arena, past_caches).ok());
          made[past_caches].assign(out, out + bytes);
          CHECK(out[bytes] == 0x5a);
        }
        const bool same = made[0] == made[1];
        CHECK(same);
        const std::vector<uint8_t> untouched(bytes, 0x5a);
        CHECK_FALSE(made[1] == untouched);
      }
    }
  });
}

}  // namespace
}  // namespace penstock::testing
