#include "base/streaming_copy.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("A copy past the caches is memcpy(), of any place and length, and nothing beside it") {
  std::vector<uint8_t> from(600);
  std::iota(from.begin(), from.end(), uint8_t{1});
  for (const size_t to_place : {0, 1, 15, 16, 63, 64}) {
    for (const size_t from_place : {0, 1, 37}) {
      for (size_t bytes = 0; bytes <= 330; ++bytes) {
        std::vector<uint8_t> to(600, 0xee), expected(600, 0xee);
        std::copy_n(from.begin() + from_place, bytes, expected.begin() + to_place);
        CopyPastCaches(to.data() + to_place, from.data() + from_place, bytes);
        REQUIRE(to == expected);
      }
    }
  }
}

}  // namespace
}  // namespace penstock
