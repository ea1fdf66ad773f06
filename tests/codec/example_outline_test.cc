#include "server/codec/example_outline.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/codec/example_messages.h"
#include "tests/codec/example_oracle.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

const std::vector<ExampleFeature> kFeatures = {
    {"ids", DType::kInt64, -1, true},   {"steps", DType::kFloat32, -1, true},
    {"tags", DType::kString, -1, true}, {"pair", DType::kString, 2, true},
    {"id", DType::kInt64, 1},           {"a name of many bytes", DType::kString, 1},
    {"vector", DType::kFloat32, 2},     {"counts", DType::kInt64, 3}};

ExampleOutline::Wish Lookup(std::string_view key) {
  for (size_t i = 0; i < kFeatures.size(); ++i) {
    const ExampleFeature& feature = kFeatures[i];
    if (feature.key == key)
      return {static_cast<int>(i), feature.kind, feature.count, feature.gathered};
  }
  return {};
}

std::unique_ptr<const ExampleOutline> Make(const std::string& record,
                                           const ExampleOutline* before = nullptr) {
  return ExampleOutline::Make(reinterpret_cast<const uint8_t*>(record.data()), record.size(),
                              Lookup, before);
}

bool Reads(const ExampleOutline& outline, const std::string& record) {
  std::vector<ExampleValue> values(kFeatures.size());
  std::vector<std::vector<int64_t>> room(kFeatures.size(), std::vector<int64_t>(3));
  std::vector<void*> numbers;
  for (auto& r : room) numbers.push_back(r.data());
  Arena arena;
  return outline.Read(reinterpret_cast<const uint8_t*>(record.data()), record.size(), values.data(),
                      numbers.data(), &arena);
}

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {}

  size_t Below(size_t bound) { return random_() % bound; }

  // As an ordinary writer makes it: the wanted features, each of them there or not, and unwanted
  // ones of each kind; lists of any length, the empty one included.
  std::string DrawRecord(bool mixes) {
    std::vector<std::string> entries = {
        Entry("ids", Int64s(Below(30))),
        Entry("x", Int64s(Below(4))),
        Entry("steps", Floats(Below(9))),
        Entry("tags", Strings(Below(5))),
        Entry("y", Strings(Below(3))),
        Entry("pair", Strings(2)),
        Entry("id", Int64s(1)),
        Entry("a name of many bytes", Strings(1)),
        Entry("vector", Floats(2)),
        Entry("counts", Int64s(3)),
        Entry("z of a long name", Floats(Below(3))),
    };
    if (mixes) {
      std::shuffle(entries.begin(), entries.end(), random_);
      entries.resize(Below(entries.size() + 1));
    }
    std::string all;
    for (const std::string& entry : entries) all += entry;
    return Example(all);
  }

 private:
  std::string Bytes(size_t size) {
    std::string out(size, 0);
    for (char& c : out) c = static_cast<char>(random_());
    return out;
  }
  // An empty list is written as nothing, or as a run of nothing.
  std::string Int64s(size_t count) {
    const bool small = Below(2) == 0;
    std::string run;
    for (size_t i = 0; i < count; ++i) run += Varint(small ? Below(128) : random_() >> Below(64));
    return Field(3, count == 0 && Below(2) == 0 ? "" : Field(1, run));
  }
  std::string Floats(size_t count) {
    return Field(2, count == 0 && Below(2) == 0 ? "" : Field(1, Bytes(4 * count)));
  }
  std::string Strings(size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out += Field(1, Bytes(Below(8) == 0 ? 200 : Below(10)));
    return Field(1, out);
  }

  std::mt19937_64 random_;
};

TEST_CASE("a parser that knows the keys finds what protobuf finds in lists of any length") {
  Writer writer(21);
  std::mt19937_64 random(22);
  const ExampleParser parser(kFeatures);
  int fine = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string record = writer.DrawRecord(/*mixes=*/i % 4 == 3);
    for (int damage = 0; damage < 6; ++damage) {
      const ParsedExample theirs = ParseByProtobuf(record, kFeatures);
      const ParsedExample ours = ParseByPenstock(record, kFeatures, parser);
      CAPTURE(i, damage, ours.message, theirs.message);
      REQUIRE(ours.verdict == theirs.verdict);
      REQUIRE(ours.values == theirs.values);
      fine += ours.verdict == ParsedExample::Verdict::kFine;
      if (record.empty()) break;
      record[random() % record.size()] ^= static_cast<char>(1 << random() % 8);
    }
  }
  CHECK(fine > 4000);
}

TEST_CASE("an outline reads every ordinary record of its keys, whatever is absent or elsewhere") {
  Writer writer(23);
  const auto outline = Make(writer.DrawRecord(false));
  REQUIRE(outline != nullptr);
  for (int i = 0; i < 500; ++i) {
    std::string record = writer.DrawRecord(i % 2 == 1);
    CAPTURE(i);
    CHECK(Reads(*outline, record));
    // A byte that is no value: the tag of the message.
    record[0] ^= 1;
    CHECK_FALSE(Reads(*outline, record));
  }
}

TEST_CASE("outlines grow by the keys of each record") {
  const auto one = Make(Example(Entry("id", Int64List("\x05")) + Entry("new", Int64List("\x06"))));
  REQUIRE(one != nullptr);
  CHECK(one->num_keys() == 2);
  const std::string other =
      Example(Entry("x of a long name", Int64List("\x05")) + Entry("id", Int64List("\x06")));
  CHECK_FALSE(Reads(*one, other));
  const auto both = Make(other, one.get());
  REQUIRE(both != nullptr);
  CHECK(both->num_keys() == 3);
  CHECK(Reads(*both, other));
  CHECK(Reads(*both, Example(Entry("new", Int64List("\x06")))));
  std::string many;
  for (size_t i = 0; i <= ExampleOutline::kMaxKeys; ++i)
    many += Entry(std::to_string(i), Int64List("\x05"));
  CHECK(Make(Example(many)) == nullptr);
}

TEST_CASE("what is not ordinary is left to the parser") {
  const std::string id = Entry("id", Int64List("\x05"));
  const std::string ids = Entry("ids", Int64List("\x05\x06"));
  const auto outline = Make(Example(id + ids + Entry("x", Int64List("\x05"))));
  REQUIRE(outline != nullptr);
  REQUIRE(Reads(*outline, Example(id + ids)));
  CHECK_FALSE(Reads(*outline, ""));
  CHECK_FALSE(Reads(*outline, Example(ids + id + ids)));                      // a key twice
  CHECK_FALSE(Reads(*outline, Example(id) + Example(ids)));                   // in two messages
  CHECK_FALSE(Reads(*outline, Example(id + ids) + Tag(9, 0) + "\x01"));       // an unknown field
  CHECK_FALSE(Reads(*outline, Example(Entry("id", FloatList("1234")))));      // the wrong kind
  CHECK_FALSE(Reads(*outline, Example(Entry("id", Int64List("\x05\x06")))));  // too many
  CHECK_FALSE(Reads(*outline, Example(Entry("ids", ""))));                    // no kind
  CHECK_FALSE(Reads(*outline, Example(Entry("ids", Field(3, Tag(1, 0) + "\x05")))));  // not packed
  CHECK_FALSE(Reads(*outline, Example(Entry("ids", Int64List("\x85")))));  // a varint that is cut
  CHECK_FALSE(Reads(*outline, Example(Entry("x", Int64List("\x85")))));    // also where unwanted
  CHECK_FALSE(Reads(*outline, Example(Entry("x", FloatList("12345")))));
  CHECK_FALSE(Reads(*outline, Example(Entry("x", BytesList("a") + BytesList("b")))));
  CHECK(Make(Example(Entry("\xff", Int64List("\x05")))) == nullptr);  // a key that is no text
}

}  // namespace
}  // namespace penstock::testing
