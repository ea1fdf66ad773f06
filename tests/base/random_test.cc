#include "base/random.h"

#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

// The known answers of the authors' Random123 distribution for philox4x32-10.
TEST_CASE("Philox gives its authors' known answers") {
  CHECK(Philox4x32({0, 0, 0, 0}, {0, 0}) ==
        PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("A draw depends on its ordinal alone, not on the order of asking") {
  DrawSequence forwards(7, 3), backwards(7, 3);
  std::vector<uint32_t> values;
  for (uint64_t i = 0; i < 100; ++i) values.push_back(forwards.Below(i, 1000));
  for (uint64_t i = 100; i-- > 0;) CHECK(backwards.Below(i, 1000) == values[i]);
}

TEST_CASE("Draws cover their range evenly") {
  std::vector<int> counts(10);
  DrawSequence draws(42, 0);
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) ++counts[draws.Below(i, 10)];
  // Binomial with n = 100,000 and p = 0.1: sigma is 95; 6 sigma.
  for (int count : counts) CHECK(std::abs(count - kDraws / 10) < 570);
}

TEST_CASE("The key of a stage depends on seed, name and the name's end") {
  CHECK(MixKey(1, "shuffle") != MixKey(2, "shuffle"));
  CHECK(MixKey(1, "shuffle") != MixKey(1, "shuffle_2"));
  CHECK(MixKey(1, std::string_view("a\0", 2)) != MixKey(1, "a"));
  CHECK(MixKey(1, "shuffle") == MixKey(1, "shuffle"));
}

}  // namespace
}  // namespace penstock
