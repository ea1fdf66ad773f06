// What a file of elements says of them. Its reading and writing is tested where it is used (engine/file_kept_test.cc).
#include "server/io/element_file.h"

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("a schema comes back from its text") {
  ElementSchema schema;
  schema.structure = "{\"a\":null,\"b c\":null,\"d\":null}";
  schema.signature = {{"a", {DType::kInt64, {}}},
                      {"b c", {DType::kString, {kUnknownSize, 3}}},
                      {"d", {DType::kBfloat16, {0, 1 << 30}}}};
  schema.compressed = true;
  const auto again = SchemaFromText(SchemaToText(schema));
  REQUIRE(again.ok());
  CHECK(again->signature == schema.signature);
  CHECK(again->structure == schema.structure);
  CHECK(again->compressed);
}

TEST_CASE("a schema of no features, or of more bytes than an element has, is refused") {
  for (const char* text : {
           "null\n",
           "null\nint8 4294967296 value\n",
           "null\nint8 9223372036854775807 value\n",
           "null\nint16 4294967296,4294967296 value\n",
           "null\nfloat32 -1,4294967295 value\n",
           "null\nstring 65536,65537 value\n",
           "[null,null]\nint8 9223372036854775800 0\nint8 9223372036854775800 1\n",
           "[null,null]\nint8 4294967295 0\nint8 - 1\n",
       }) {
    INFO(text);
    CHECK(SchemaFromText(text).status().code() == absl::StatusCode::kDataLoss);
  }
  CHECK(SchemaFromText("null\nint8 4294967295 value\n").ok());
}

}  // namespace
}  // namespace penstock
