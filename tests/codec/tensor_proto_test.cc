// TensorProtos of flags whose bits are other than 0 and 1. TensorFlow's own tensors are compared by
// tests/client/python_parsing_test.py.
#include "server/codec/tensor_proto.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

// Three flags, DT_BOOL of shape (3,), in these further fields.
std::string Flags(const std::vector<uint8_t>& fields) {
  std::vector<uint8_t> message = {0x08, 10, 0x12, 4, 0x12, 2, 0x08, 3};
  message.insert(message.end(), fields.begin(), fields.end());
  const auto tensor = ParseTensorProto(message.data(), message.size());
  INFO(tensor.status().ToString());
  REQUIRE(tensor.ok());
  CHECK(TypeToString(tensor->type) == "bool (3,)");
  return tensor->values;
}

TEST_CASE("flags of a TensorProto are 0 or 1, whatever their bits") {
  const auto flags = [](int a, int b, int c) {
    return std::string{static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)};
  };
  // tensor_content.
  CHECK(Flags({0x22, 3, 0, 2, 255}) == flags(0, 1, 1));
  CHECK(Flags({0x22, 3, 1, 0, 128}) == flags(1, 0, 1));
  // bool_val, packed: 0, 256, 1; and one by one: 2^63, 0, whose last one stands for what follows.
  CHECK(Flags({0x5a, 4, 0, 0x80, 2, 1}) == flags(0, 1, 1));
  CHECK(Flags({0x58, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0x58, 0}) ==
        flags(1, 0, 0));
}

}  // namespace
}  // namespace penstock::testing
