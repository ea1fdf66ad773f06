#include "server/codec/example.h"

#include <cstring>
#include <string>
#include <vector>

#include "tests/codec/example_messages.h"
#include "tests/codec/example_oracle.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

using Verdict = ParsedExample::Verdict;

const std::vector<ExampleFeature> kChess = {{"d", DType::kString, 1}, {"s", DType::kInt64, 1}};

std::string D(const std::string& value = "abc") { return Entry("d", BytesList(value)); }
std::string S(int64_t value = 5) { return Entry("s", Int64List(Varint(value))); }

// Groups nested `depth` deep.
std::string Groups(int depth) {
  std::string out;
  for (int i = 0; i < depth; ++i) out += Tag(7, 3);
  for (int i = 0; i < depth; ++i) out += Tag(7, 4);
  return out;
}

struct Case {
  std::string name;
  std::string record;
  Verdict verdict;
};

std::vector<Case> Cases() {
  const std::string float_bits("\0\0\x80\x3f", 4);
  const Verdict fine = Verdict::kFine, malformed = Verdict::kMalformed,
                unwanted = Verdict::kUnwanted;
  std::vector<Case> cases = {
      {"as an ordinary writer makes it", Example(D() + S()), fine},
      {"the other order", Example(S() + D()), fine},
      {"empty record", "", fine},
      {"empty features", Example(""), fine},
      {"features in two messages", Example(D()) + Example(S()), fine},
      {"empty bytes", Example(D("") + S()), fine},
      {"194 bytes", Example(D(std::string(194, 'x')) + S(-2000)), fine},
      {"20000 bytes", Example(D(std::string(20000, 'x')) + S(1LL << 62)), fine},
      {"one key twice, last wins", Example(D("one") + S() + D("two")), fine},
      {"wrong kind, then right", Example(Entry("d", Int64List("\x01")) + S() + D()), fine},
      {"right kind, then wrong", Example(D() + S() + Entry("d", Int64List("\x01"))), unwanted},
      {"right, then without kind", Example(D() + S() + Entry("d", "")), fine},
      {"value before key", Example(Field(1, Field(2, BytesList("q")) + Field(1, "d")) + S()), fine},
      {"key twice in an entry",
       Example(Field(1, Field(1, "s") + Field(1, "d") + Field(2, BytesList("q"))) + S()), fine},
      {"key again behind the value",
       Example(Field(1, Field(1, "s") + Field(2, BytesList("q")) + Field(1, "d")) + S()), fine},
      {"entry without key", Example(Field(1, Field(2, BytesList("q"))) + D() + S()), fine},
      {"entry without value", Example(Field(1, Field(1, "d")) + S()), fine},
      {"empty entry", Example(Field(1, "") + D() + S()), fine},
      {"entry with an unknown field",
       Example(Field(1, Field(1, "d") + Field(2, BytesList("q")) + Field(9, "zz")) + S()), fine},
      {"value in two parts, other kind wins",
       Example(Field(1, Field(1, "d") + Field(2, Int64List("\x01")) + Field(2, BytesList("q")))),
       fine},
      {"value in two parts, the same kind joins",
       Example(Field(1, Field(1, "d") + Field(2, BytesList("p")) + Field(2, BytesList("q")))),
       unwanted},
      {"oneof twice, other kind wins", Example(Entry("s", BytesList("a") + Int64List("\x07"))),
       fine},
      {"oneof three times",
       Example(Entry("s", Int64List("\x01") + BytesList("a") + Int64List("\x07"))), fine},
      {"oneof twice, joined", Example(Entry("s", Int64List("\x01") + Int64List("\x07"))), unwanted},
      {"oneof twice, first part empty", Example(Entry("s", Field(3, "") + Int64List("\x07"))),
       fine},
      {"unpacked int64", Example(D() + Entry("s", Field(3, Tag(1, 0) + Varint(300)))), fine},
      {"empty packed run and a value",
       Example(Entry("s", Field(3, Field(1, "") + Tag(1, 0) + Varint(300) + Field(1, "")))), fine},
      {"two packed runs", Example(Entry("s", Field(3, Field(1, "\x01") + Field(1, "\x02")))),
       unwanted},
      {"empty int64 list", Example(D() + Entry("s", Field(3, ""))), unwanted},
      {"empty bytes list", Example(Entry("d", Field(1, "")) + S()), unwanted},
      {"float instead of int64", Example(D() + Entry("s", FloatList(float_bits))), unwanted},
      {"empty float list instead of int64", Example(D() + Entry("s", Field(2, ""))), unwanted},
      {"feature without kind", Example(D() + Entry("s", "")), fine},
      {"unknown fields everywhere",
       Field(9, "x") + Tag(10, 0) + Varint(1) + Tag(11, 1) + "12345678" + Tag(12, 5) + "1234" +
           Groups(3) + Example(Groups(2) + D() + Tag(15, 0) + Varint(1 << 20) + S()),
       fine},
      {"unknown fields in a list",
       Example(Entry("s", Field(3, Field(2, "zz") + Groups(1) + Field(1, "\x05")))), fine},
      {"known field, wrong wire type",
       Example(Entry("s", Field(3, Tag(1, 5) + "1234") + Tag(3, 0) + "\x05")), unwanted},
      {"features as varint", Tag(1, 0) + Varint(5) + Example(D()), fine},
      {"long tag", Tag(1, 2, 5) + Varint(D().size()) + D(), fine},
      {"tag too long", Tag(1, 2, 6) + Varint(D().size()) + D(), malformed},
      {"long size", Field(1, D(), 5), fine},
      {"size too long", Field(1, D(), 6), malformed},
      {"long value", Example(Entry("s", Int64List(Varint(5, 10)))), fine},
      {"value too long", Example(Entry("s", Int64List(Varint(5, 11)))), malformed},
      {"value of more than 64 bits",
       Example(Entry("s", Int64List("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))), fine},
      {"varint cut inside a packed run", Example(Entry("s", Int64List("\x80")) + D()), malformed},
      {"varint cut at the end", Example(D()) + Tag(10, 0) + "\x80", malformed},
      {"tag cut", Example(D()) + "\x80", malformed},
      {"size cut", Example(D()) + Tag(9, 2), malformed},
      {"size beyond the end", Tag(1, 2) + Varint(5) + "1234", malformed},
      {"size of 2 GiB", Tag(9, 2) + Varint(1u << 31) + "1234", malformed},
      {"size of -1", Tag(9, 2) + Varint(~0ull) + "1234", malformed},
      {"inner size beyond its message", Example(Tag(1, 2) + Varint(4) + "\x0a\x01") + "dd",
       malformed},
      {"field zero", Tag(0, 2) + Varint(0), malformed},
      {"tag zero", std::string("\0", 1), malformed},
      {"tag zero behind a message", Example(D()) + std::string("\0", 1), malformed},
      {"wire type 6", Tag(9, 6), malformed},
      {"wire type 7", Tag(9, 7), malformed},
      {"end without a group", Tag(9, 4), malformed},
      {"end of another group", Tag(9, 3) + Tag(8, 4), malformed},
      {"group without an end", Tag(9, 3), malformed},
      {"group that ends outside its message", Example(Tag(9, 3)) + Tag(9, 4), malformed},
      {"100 groups", Groups(100), fine},
      {"101 groups", Groups(101), malformed},
      {"99 groups in Features", Example(Groups(99)), fine},
      {"100 groups in Features", Example(Groups(100)), malformed},
      {"98 groups in an entry", Example(Field(1, Groups(98))), fine},
      {"99 groups in an entry", Example(Field(1, Groups(99))), malformed},
      {"97 groups in a Feature", Example(Entry("d", Groups(97))), fine},
      {"98 groups in a Feature", Example(Entry("d", Groups(98))), malformed},
      {"96 groups in a list", Example(Entry("s", Field(3, Groups(96) + Field(1, "\x05")))), fine},
      {"97 groups in a list", Example(Entry("s", Field(3, Groups(97) + Field(1, "\x05")))),
       malformed},
      {"floats cut", Example(Entry("f", FloatList("12345"))), malformed},
      {"unpacked float", Example(Entry("f", Field(2, Tag(1, 5) + "1234"))), fine},
      {"unpacked float cut", Example(Entry("f", Field(2, Tag(1, 5) + "123"))), malformed},
      {"malformed list of a key nobody wants", Example(D() + S() + Entry("x", Int64List("\x80"))),
       malformed},
      {"key with two-byte letters", Example(Entry("\xc3\xa9", BytesList("x")) + D()), fine},
      {"key with a four-byte letter", Example(Entry("\xf0\x9f\x98\x80", BytesList("x")) + D()),
       fine},
      {"key with U+10FFFF", Example(Entry("\xf4\x8f\xbf\xbf", BytesList("x"))), fine},
      {"key beyond U+10FFFF", Example(Entry("\xf4\x90\x80\x80", BytesList("x"))), malformed},
      {"key with a surrogate", Example(Entry("\xed\xa0\x80", BytesList("x"))), malformed},
      {"key overlong", Example(Entry("\xc0\x80", BytesList("x"))), malformed},
      {"key overlong, three bytes", Example(Entry("\xe0\x9f\xbf", BytesList("x"))), malformed},
      {"key cut inside a letter", Example(Entry("\xe2\x82", BytesList("x"))), malformed},
      {"key of 0xff", Example(Entry("\xff", BytesList("x"))), malformed},
      {"bad key replaced by a good one",
       Example(Field(1, Field(1, "\xff") + Field(1, "d") + Field(2, BytesList("q")))), malformed},
  };
  return cases;
}

TEST_CASE("faults 11 to 19: hand-made messages get protobuf's verdict and values") {
  for (const Case& test : Cases()) {
    INFO(test.name);
    const ParsedExample theirs = ParseByProtobuf(test.record, kChess);
    const ParsedExample ours = ParseByPenstock(test.record, kChess);
    INFO(ours.message);
    CHECK(theirs.verdict == test.verdict);
    CHECK(ours.verdict == theirs.verdict);
    CHECK(ours.values == theirs.values);
  }
}

TEST_CASE("fault 19: text of a kind that does not count is written nowhere") {
  // More than any memory that is at hand by chance.
  const std::string large(4 << 20, 'L');
  const std::string feature = Field(1, Field(1, std::string(100, 'a')) + Field(1, large)) +
                              FloatList("1234") + Field(1, Field(1, "x") + Field(1, "y"));
  const std::string record = Example(Entry("t", feature));
  const ExampleParser parser({{"t", DType::kString, ExampleFeature::kAnyCount, /*gathered=*/true}});
  Arena arena;
  ExampleValue value;
  REQUIRE(parser
              .Parse(reinterpret_cast<const uint8_t*>(record.data()), record.size(), &value,
                     nullptr, &arena)
              .ok());
  CHECK(value.present);
  CHECK(value.count == 2);
  const uint32_t sizes[] = {1, 1};
  REQUIRE(value.size == sizeof sizes + 2);
  CHECK(std::memcmp(value.bytes, sizes, sizeof sizes) == 0);
  CHECK(std::string(reinterpret_cast<const char*>(value.bytes) + sizeof sizes, 2) == "xy");
}

TEST_CASE("fault 18: every cut of a record gets protobuf's verdict") {
  const std::string record = Example(D(std::string(194, 'x')) + S(-7)) + Field(9, "tail");
  for (size_t size = 0; size <= record.size(); ++size) {
    INFO(size);
    const std::string cut = record.substr(0, size);
    const ParsedExample theirs = ParseByProtobuf(cut, kChess);
    const ParsedExample ours = ParseByPenstock(cut, kChess);
    CHECK(ours.verdict == theirs.verdict);
    CHECK(ours.values == theirs.values);
  }
}

TEST_CASE("values point into the record") {
  const std::string record = Example(D("abc") + S(-5));
  const ExampleParser parser(kChess);
  ExampleValue values[2];
  int64_t s = 0;
  void* const numbers[2] = {nullptr, &s};
  const auto* const data = reinterpret_cast<const uint8_t*>(record.data());
  REQUIRE(parser.Parse(data, record.size(), values, numbers).ok());
  CHECK(values[0].present);
  CHECK(values[0].bytes == data + record.find("abc"));
  CHECK(values[0].size == 3);
  CHECK(values[1].present);
  CHECK(s == -5);
}

TEST_CASE("many keys, similar and long ones, are told apart") {
  std::vector<ExampleFeature> features;
  std::string entries;
  for (const std::string key : {"", "a", "b", "ab", "abcdef", "abcdeg", "abcdefg", "abcdefh",
                                "image/encoded", "image/encodee", "image/class/label"}) {
    features.push_back({key, DType::kInt64, 1});
  }
  features.push_back({std::string(127, 'k'), DType::kInt64, 1});
  features.push_back({std::string(128, 'k'), DType::kInt64, 1});
  features.push_back({std::string(300, 'k'), DType::kInt64, 1});
  for (size_t i = 0; i < features.size(); ++i) {
    entries += Entry(features[i].key, Int64List(Varint(i + 1)));
    entries += Entry(features[i].key + "x", Int64List(Varint(100)));
  }
  const std::string record = Example(entries);
  const ParsedExample ours = ParseByPenstock(record, features);
  REQUIRE(ours.verdict == Verdict::kFine);
  for (size_t i = 0; i < features.size(); ++i) {
    INFO(features[i].key);
    // Were a key taken for its neighbour with an x, the value would be 100.
    CHECK(ours.values[i].ints == std::vector<int64_t>{static_cast<int64_t>(i) + 1});
  }
  CHECK(ours.values == ParseByProtobuf(record, features).values);
}

TEST_CASE("what is wrong is said") {
  const auto message = [](const std::string& record) {
    return ParseByPenstock(record, kChess).message;
  };
  CHECK(message(Example(Entry("d", Int64List("\x01")) + S())) ==
        "feature \"d\": expected bytes, found int64");
  CHECK(message(Example(D() + Entry("s", BytesList("x")))) ==
        "feature \"s\": expected int64, found bytes");
  CHECK(message(Example(D() + Entry("s", Int64List("\x01\x02")))) ==
        "feature \"s\": expected 1 value, found 2");
  CHECK(message(Example(D() + Entry("s", Field(3, "")))) ==
        "feature \"s\": expected 1 value, found 0");
  // Of two wrong features the first of the plan is named.
  CHECK(message(Example(Entry("s", BytesList("x")) + Entry("d", Int64List("\x01")))) ==
        "feature \"d\": expected bytes, found int64");
  CHECK(message("\xff") == "not a tf.train.Example: malformed protobuf message");
}

}  // namespace
}  // namespace penstock::testing
