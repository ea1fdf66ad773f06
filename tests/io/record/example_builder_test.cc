#include "io/record/example_builder.h"

#include <string>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("An Example equals TensorFlow's, byte for byte") {
  ExampleBuilder example;
  example.AddInt64("dropped by Clear", 1);
  example.Clear();
  example.AddInt64("empty", absl::Span<const int64_t>());
  example.AddBytesList("name", {"a", ""});
  example.AddInt64("n", {0, -1, 300});
  example.AddFloat("x", {1.5f, -2.f});
  // tf.train.Example with the same features, SerializeToString(deterministic=True).
  const std::string golden(
      "\nI"
      "\n\x0b\n\x05"
      "empty\x12\x02\x1a\x00"
      "\n\x0f\n\x04name\x12\x07\n\x05\n\x01"
      "a\n\x00"
      "\n\x16\n\x01n\x12\x11\x1a\x0f\n\r\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xac\x02"
      "\n\x11\n\x01x\x12\x0c\x12\n\n\x08\x00\x00\xc0?\x00\x00\x00\xc0",
      75);
  CHECK(example.Serialize() == golden);
}

TEST_CASE("Lengths beyond 127 take more than one byte") {
  ExampleBuilder example;
  const std::string value(200, 'v');
  example.AddBytes("d", value);
  // Example{ Features{ entry{ "d", Feature{ BytesList{ value }}}}}: heads of 1 + 2 bytes, the key's
  // 1 + 1 + 1.
  CHECK(example.Serialize().size() == 200 + 5 * 3 + 3);
  CHECK(example.Serialize().substr(0, 6) == "\x0a\xd7\x01\x0a\xd4\x01");
}

}  // namespace
}  // namespace penstock
