#include "io/element/packed_element.h"

#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

std::vector<uint8_t> Drawn(size_t size) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<uint8_t>(Philox4x32({static_cast<uint32_t>(i), 0, 0, 0}, {1, 2})[0]);
  return bytes;
}

absl::Span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST_CASE("A packed element is unpacked to its bytes, whether it shrinks or not") {
  for (const size_t size : {0, 1, 15, 16, 255, 65535, 65536, 200001}) {
    for (const bool shrinks : {false, true}) {
      const std::vector<uint8_t> element = shrinks ? std::vector<uint8_t>(size, 7) : Drawn(size);
      const std::string packed = PackElement(element);
      if (shrinks && size > 1000) CHECK(packed.size() < size / 50);
      CHECK(packed.size() <= size + (size / 65535 + 1) * 5 + 72);
      Arena arena;
      const auto unpacked = UnpackElement(BytesOf(packed), arena);
      INFO(size << " " << unpacked.status().ToString());
      REQUIRE(unpacked.ok());
      CHECK(std::vector<uint8_t>(unpacked->begin(), unpacked->end()) == element);
    }
  }
}

TEST_CASE(
    "Bytes that are no packed element are refused, each of them, before memory is asked for") {
  const std::string packed = PackElement(Drawn(100));
  Arena arena;
  for (size_t size = 0; size < packed.size(); ++size)
    CHECK(absl::IsDataLoss(UnpackElement(BytesOf(packed.substr(0, size)), arena).status()));
  CHECK(absl::IsDataLoss(UnpackElement(BytesOf(packed + "x"), arena).status()));
  for (size_t bit = 0; bit < 64; ++bit) {
    std::string other = packed;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ 1 << bit % 8);
    CHECK(absl::IsDataLoss(UnpackElement(BytesOf(other), arena).status()));
  }
  // What 80 bytes could hold at most is refused for more than 1032 times as many.
  std::string huge = PackElement({});
  const uint64_t claimed = uint64_t{1} << 31;
  std::memcpy(huge.data(), &claimed, sizeof(claimed));
  const auto refused = UnpackElement(BytesOf(huge), arena);
  CHECK(absl::IsDataLoss(refused.status()));
  CHECK(refused.status().message().find("cannot hold") != std::string_view::npos);
}

}  // namespace
}  // namespace penstock
