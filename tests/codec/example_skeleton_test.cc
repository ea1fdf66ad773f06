#include "server/codec/example_skeleton.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/arena.h"
#include "server/codec/example.h"
#include "tests/codec/example_messages.h"
#include "tests/codec/example_oracle.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

const std::vector<ExampleFeature> kFeatures = {{"d", DType::kString, 1},
                                               {"s", DType::kInt64, 1},
                                               {"list", DType::kInt64, 3},
                                               {"f", DType::kFloat32, 2}};

ExampleSkeleton::Wish Lookup(std::string_view key) {
  for (size_t i = 0; i < kFeatures.size(); ++i) {
    if (kFeatures[i].key == key) {
      return {static_cast<int>(i), kFeatures[i].kind, kFeatures[i].count};
    }
  }
  return {};
}

std::unique_ptr<const ExampleSkeleton> Make(const std::string& record) {
  return ExampleSkeleton::Make(reinterpret_cast<const uint8_t*>(record.data()), record.size(),
                               Lookup);
}

std::string FloatList(const std::string& bytes) { return Field(2, Field(1, bytes)); }

// As an ordinary writer makes it, with an unwanted feature of each kind; values and the sizes of
// varints are drawn.
std::string DrawRecord(std::mt19937_64& random) {
  const auto number = [&random] { return Varint(random() >> random() % 64); };
  const auto bytes = [&random](size_t size) {
    std::string out(size, 0);
    for (char& c : out) c = static_cast<char>(random());
    return out;
  };
  return Example(Entry("d", BytesList(bytes(30))) + Entry("x", Int64List(number())) +
                 Entry("list", Int64List(number() + number() + number())) +
                 Entry("y", BytesList(bytes(5))) + Entry("f", FloatList(bytes(8))) +
                 Entry("z", FloatList(bytes(4))) + Entry("s", Int64List(number())));
}

TEST_CASE("a parser that knows a record's form finds what protobuf finds") {
  std::mt19937_64 random(11);
  const ExampleParser parser(kFeatures);
  for (int i = 0; i < 3000; ++i) {
    std::string record = DrawRecord(random);
    REQUIRE(Make(record) != nullptr);
    // Whole, and with a bit flipped anywhere: the size stays, so that the known form is tried.
    for (int damage = 0; damage < 8; ++damage) {
      const ParsedExample theirs = ParseByProtobuf(record, kFeatures);
      const ParsedExample ours = ParseByPenstock(record, kFeatures, parser);
      CAPTURE(i, damage, ours.message, theirs.message);
      REQUIRE(ours.verdict == theirs.verdict);
      REQUIRE(ours.values == theirs.values);
      record[random() % record.size()] ^= static_cast<char>(1 << random() % 8);
    }
  }
}

TEST_CASE("rows of known forms are parsed at once as each by itself") {
  constexpr int kRows = 500;
  std::mt19937_64 random(13);
  const ExampleParser parser(kFeatures);
  // Few sizes of numbers, so that forms come again; every tenth record lacks a feature, has a byte
  // list that is too long, or is damaged.
  std::vector<std::string> records;
  for (int i = 0; i < kRows; ++i) {
    const auto number = [&random] { return Varint(random() % 100); };
    const std::string list = number() + number() + number();
    const int flaw = random() % 30;
    std::string record =
        Example(Entry("d", BytesList(std::string(flaw == 0 ? 31 : 30, static_cast<char>(i)))) +
                (flaw == 1 ? "" : Entry("list", Int64List(list))) +
                Entry("f", FloatList(std::string(8, static_cast<char>(i)))) +
                Entry("s", Int64List(Varint(random() % 2 ? 5 : 1000))));
    if (flaw == 2) record[random() % record.size()] ^= 0x40;
    record.append(Arena::kPadding, 0);
    records.push_back(std::move(record));
  }
  std::vector<RowBytes> rows;
  for (const std::string& record : records)
    rows.push_back(
        {reinterpret_cast<const uint8_t*>(record.data()), record.size() - Arena::kPadding});
  const Column column{nullptr, 0, rows.data()};

  std::vector<RowBytes> d(kRows);
  std::vector<int64_t> s(kRows), list(3 * kRows);
  std::vector<float> f(2 * kRows);
  const ExampleRows places[] = {{d.data(), nullptr, 0, 30},
                                {nullptr, reinterpret_cast<uint8_t*>(s.data()), 8},
                                {nullptr, reinterpret_cast<uint8_t*>(list.data()), 24},
                                {nullptr, reinterpret_cast<uint8_t*>(f.data()), 8}};
  int known = 0;
  for (int row = 0; row < kRows; ++row) {
    const int end = parser.ParseKnown(column, row, kRows, places);
    REQUIRE(end >= row);
    for (; row < kRows; ++row) {
      ExampleValue values[4];
      int64_t own_s = 0, own_list[3] = {};
      float own_f[2] = {};
      void* const numbers[] = {nullptr, &own_s, own_list, own_f};
      const bool sound = parser.Parse(rows[row].data, rows[row].size, values, numbers).ok();
      if (row == end) break;  // whatever it is
      ++known;
      CAPTURE(row);
      REQUIRE(sound);
      REQUIRE(d[row].data == values[0].bytes);
      REQUIRE(d[row].size == 30);
      REQUIRE(values[0].size == 30);
      REQUIRE(s[row] == own_s);
      REQUIRE(std::equal(own_list, own_list + 3, list.begin() + 3 * row));
      REQUIRE(std::memcmp(own_f, f.data() + 2 * row, sizeof(own_f)) == 0);
      REQUIRE((values[1].present && values[2].present && values[3].present));
    }
  }
  CHECK(known > kRows / 2);
  CHECK(known < kRows);
}

TEST_CASE("a form is its record's own and no other's") {
  std::mt19937_64 random(12);
  const std::string record = DrawRecord(random);
  const auto form = Make(record);
  REQUIRE(form != nullptr);
  REQUIRE(form->size() == record.size());
  CHECK(form->Match(reinterpret_cast<const uint8_t*>(record.data())));
  // A byte that is no value: the tag of the first entry.
  std::string other = record;
  other[0] ^= 1;
  CHECK_FALSE(form->Match(reinterpret_cast<const uint8_t*>(other.data())));
  // The last byte ends a varint: one that goes on has another form.
  other = record;
  other.back() = static_cast<char>(other.back() ^ 0x80);
  CHECK_FALSE(form->Match(reinterpret_cast<const uint8_t*>(other.data())));
}

TEST_CASE("unusual messages have no form") {
  const std::string d = Entry("d", BytesList(std::string(30, 'x')));
  const std::string s = Entry("s", Int64List("\x05"));
  REQUIRE(Make(Example(d + s)) != nullptr);
  CHECK(Make("") == nullptr);
  CHECK(Make(Example(d + s + d)) == nullptr);                          // a key twice
  CHECK(Make(Example(d) + Example(s)) == nullptr);                     // features in two messages
  CHECK(Make(Example(d + s) + Tag(9, 0) + "\x01") == nullptr);         // an unknown field
  CHECK(Make(Example(Entry("d", Int64List("\x05")) + s)) == nullptr);  // the wrong kind
  CHECK(Make(Example(d + Entry("s", Int64List("\x05\x06")))) == nullptr);         // too many values
  CHECK(Make(Example(d + Entry("s", ""))) == nullptr);                            // no kind
  CHECK(Make(Example(d + Entry("s", Field(3, Tag(1, 0) + "\x05")))) == nullptr);  // not packed
  CHECK(Make(Example(d + Entry("s", Int64List("\x85")))) == nullptr);  // a varint that is cut
  CHECK(Make(Example(Entry("d", BytesList("a") + BytesList("b")) + s)) == nullptr);
}

}  // namespace
}  // namespace penstock::testing
