#include "base/byte_order.h"

#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

TEST_CASE("byte order: numbers stand at any address, either byte first") {
  // What Python's int.from_bytes and struct.unpack make of these.
  const uint8_t bytes[] = {0x00, 0x01, 0x82, 0x03, 0x84, 0x05, 0x06, 0x07, 0xf8, 0x3f};
  CHECK(LoadLittle<uint16_t>(bytes + 1) == 0x8201);
  CHECK(LoadLittle<int16_t>(bytes + 1) == -32255);
  CHECK(LoadLittle<uint32_t>(bytes + 1) == 0x84038201);
  CHECK(LoadLittle<uint64_t>(bytes + 1) == 0xf807060584038201);
  CHECK(LoadLittle<int64_t>(bytes + 1) == -574483806707023359);
  CHECK(LoadLittle<float>(bytes + 6) == 1.9377143383026123F);
  CHECK(LoadBig<uint16_t>(bytes + 1) == 0x0182);
  CHECK(LoadBig<uint32_t>(bytes + 1) == 0x01820384);
  CHECK(LoadBig<uint32_t, 3>(bytes + 2) == 0x820384);
  CHECK(LoadBig<uint64_t>(bytes + 1) == 0x01820384050607f8);
  CHECK(LoadBig<uint64_t, 5>(bytes + 4) == 0x84050607f8);
}

}  // namespace
}  // namespace penstock::testing
