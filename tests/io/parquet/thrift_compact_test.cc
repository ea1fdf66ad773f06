// Structs of Thrift's compact protocol by hand, and bytes that are none.
#include "io/parquet/thrift_compact.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

absl::Span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Passes over all of a struct.
bool IsSound(const std::string& text) {
  ThriftReader reader(Bytes(text));
  reader.Struct([](int) {});
  return !reader.malformed();
}

TEST_CASE("parquet: fields of all types are read, and passed over") {
  // 1: i32 -3, 2: bool true, 4: binary "ab", 20 (long form): i64 300, 21: list of 2 i16, 22: a
  // struct with 1: false.
  const std::string text(
      "\x15\x05\x11\x28\x02"
      "ab\x06\x28\xd8\x04\x19\x24\x02\x04\x1c\x12\0\0",
      19);
  ThriftReader reader(Bytes(text));
  std::vector<int64_t> numbers;
  std::vector<int> fields;
  std::string binary;
  bool is_true = false, is_false = true;
  reader.Struct([&](int field) {
    fields.push_back(field);
    if (field == 1 || field == 20) numbers.push_back(reader.Number());
    if (field == 2) is_true = reader.Bool();
    if (field == 4) binary = std::string(reader.Binary());
    if (field == 21) reader.List([&] { numbers.push_back(reader.Number()); });
    if (field == 22) reader.Inner([&](int) { is_false = reader.Bool(); });
  });
  CHECK_FALSE(reader.malformed());
  CHECK(reader.position() == text.size());
  CHECK(fields == std::vector<int>{1, 2, 4, 20, 21, 22});
  CHECK(numbers == std::vector<int64_t>{-3, 300, 1, 2});
  CHECK(binary == "ab");
  CHECK(is_true);
  CHECK_FALSE(is_false);
  CHECK(IsSound(text));
  for (size_t size = 0; size < text.size(); ++size) {
    INFO(size);
    ThriftReader cut(Bytes(text).first(size));
    cut.Struct([](int) {});
    CHECK(cut.malformed());
    CHECK(cut.ended());
  }
}

TEST_CASE("parquet: what is no struct is malformed, and ends") {
  const std::string end(1, '\0');
  const struct {
    const char* name;
    std::string bytes;
    bool is_sound;
  } cases[] = {
      {"a double", absl::StrCat("\x17", std::string(8, 'x'), end), true},
      {"a uuid", absl::StrCat("\x1d", std::string(16, 'x'), end), true},
      {"a map",
       std::string("\x1b\x01\x85\x01"
                   "a\x02",
                   6) +
           end,
       true},
      {"an empty map", std::string("\x1b\0", 2) + end, true},
      {"a list of bools", "\x19\x21\x01\x02" + end, true},
      {"a type that there is not", "\x1e" + end, false},
      {"no type", "\x10" + end, false},
      {"a list of more elements than bytes", "\x19\xf5\xff\xff\xff\xff\x0f" + end, false},
      {"a map of no types", std::string("\x1b\x01\0", 3) + end, false},
      {"a binary of 2^63 bytes", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + end, false},
      {"a varint of 11 bytes", "\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + end, false},
      {"a varint of 65 bits", "\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02" + end, false},
      {"structs in each other", std::string(1000, '\x1c') + std::string(1001, '\0'), false},
      {"lists in each other", std::string(1000, '\x19') + end, false},
      {"some structs in each other", std::string(20, '\x1c') + std::string(21, '\0'), true},
  };
  for (const auto& one : cases) {
    INFO(one.name);
    CHECK(IsSound(one.bytes) == one.is_sound);
  }
}

TEST_CASE("parquet: a value of another type than is asked for is malformed") {
  const std::string number("\x15\x05\0", 3);
  {
    ThriftReader reader(Bytes(number));
    reader.Struct([&](int) { CHECK(reader.Binary().empty()); });
    CHECK(reader.malformed());
    CHECK_FALSE(reader.ended());
  }
  {
    ThriftReader reader(Bytes(number));
    reader.Struct([&](int) { CHECK_FALSE(reader.Bool()); });
    CHECK(reader.malformed());
  }
  {
    ThriftReader reader(Bytes(number));
    bool has_elements = false;
    reader.Struct([&](int) { reader.List([&] { has_elements = true; }); });
    CHECK(reader.malformed());
    CHECK_FALSE(has_elements);
  }
  {
    // A number twice.
    ThriftReader reader(Bytes(number));
    reader.Struct([&](int) {
      CHECK(reader.Number() == -3);
      CHECK(reader.Number() == 0);
    });
    CHECK(reader.malformed());
  }
  {
    // 2^31 as an i32.
    const std::string text("\x15\x80\x80\x80\x80\x10\0", 7);
    ThriftReader reader(Bytes(text));
    reader.Struct([&](int) { CHECK(reader.Number() == 0); });
    CHECK(reader.malformed());
  }
}

}  // namespace
}  // namespace penstock
