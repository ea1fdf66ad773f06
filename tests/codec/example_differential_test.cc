// Thousands of generated messages, whole and damaged, through ExampleParser and the protobuf
// library. Set PENSTOCK_TEST_SEED to repeat a failure.
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "server/codec/example.h"
#include "tests/codec/example_messages.h"
#include "tests/codec/example_oracle.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

  std::string MakeExample() {
    std::string out;
    for (uint64_t i = Below(3); i > 0; --i) out += Unknown(3);
    for (uint64_t i = OneIn(4) ? Below(3) : 1; i > 0; --i) {
      out += Tag(1, 2, Stretch(5)) + Sized(MakeFeatures());
      if (OneIn(8)) out += Unknown(3);
    }
    return out;
  }

  // Bytes flipped, dropped, doubled, inserted; tails cut.
  std::string Damage(std::string record) {
    for (uint64_t i = 1 + Below(3); i > 0 && !record.empty(); --i) {
      const size_t at = Below(record.size());
      switch (Below(6)) {
        case 0:
          record[at] = static_cast<char>(record[at] ^ 1 << Below(8));
          break;
        case 1:
          record[at] = static_cast<char>(Below(256));
          break;
        case 2:
          record.erase(at, 1 + Below(4));
          break;
        case 3:
          record.insert(at, record.substr(Below(record.size()), 1 + Below(20)));
          break;
        case 4:
          record.insert(at, 1, static_cast<char>(OneIn(2) ? 0x80 : 0xff));
          break;
        default:
          if (OneIn(3)) record.resize(at);
      }
    }
    return record;
  }

 private:
  size_t Stretch(size_t bytes_max) { return OneIn(20) ? 1 + Below(bytes_max) : 1; }

  std::string Sized(const std::string& content) {
    return Varint(content.size(), Stretch(5)) + content;
  }

  std::string Text(size_t size_max) {
    std::string out(Below(size_max + 1), 0);
    for (char& c : out) c = static_cast<char>(Below(256));
    return out;
  }

  std::string Unknown(int depth) {
    const uint32_t number = OneIn(4) ? 1 + Below(1 << 20) : 4 + Below(4);
    switch (Below(6)) {
      case 0:
        return Tag(number, 0, Stretch(5)) + Varint(random_() >> Below(64), Stretch(10));
      case 1:
        return Tag(number, 1) + std::string(8, 'x');
      case 2:
        return Tag(number, 5) + std::string(4, 'x');
      case 3: {
        if (depth == 0) return "";
        std::string inside;
        for (uint64_t i = Below(3); i > 0; --i) inside += Unknown(depth - 1);
        return Tag(number, 3) + inside + Tag(number, 4);
      }
      default:
        return Tag(number, 2) + Sized(Text(6));
    }
  }

  std::string MakeFeatures() {
    std::string out;
    for (uint64_t i = Below(6); i > 0; --i) {
      out += OneIn(10) ? Unknown(3) : Tag(1, 2, Stretch(5)) + Sized(MakeEntry());
    }
    return out;
  }

  std::string Key() {
    static const char* const kKeys[] = {"d", "s",       "f", "v", "label", "image/encoded",
                                        "",  "\xc3\xa9"};
    return OneIn(30) ? Text(3) : kKeys[Below(8)];
  }

  std::string MakeEntry() {
    const std::string key = Field(1, Key());
    const std::string value = Tag(2, 2) + Sized(MakeFeature());
    switch (Below(12)) {
      case 0:
        return value + key;
      case 1:
        return key;
      case 2:
        return value;
      case 3:
        return key + value + Tag(2, 2) + Sized(MakeFeature());
      case 4:
        return key + value + Field(1, Key());
      case 5:
        return Unknown(2) + key + Unknown(2) + value + Unknown(2);
      default:
        return key + value;
    }
  }

  std::string MakeFeature() {
    std::string out;
    if (OneIn(20)) return out;
    for (uint64_t i = OneIn(5) ? 2 + Below(2) : 1; i > 0; --i) {
      if (OneIn(20)) out += Unknown(2);
      switch (Below(3)) {
        case 0:
          out += Tag(1, 2) + Sized(MakeBytesList());
          break;
        case 1:
          out += Tag(2, 2) + Sized(MakeNumbers(/*floats=*/true));
          break;
        default:
          out += Tag(3, 2) + Sized(MakeNumbers(/*floats=*/false));
      }
    }
    return out;
  }

  uint64_t FewValues() { return OneIn(5) ? Below(5) : 1; }

  std::string MakeBytesList() {
    std::string out;
    for (uint64_t i = FewValues(); i > 0; --i) {
      if (OneIn(20)) out += Unknown(2);
      out += Tag(1, 2) + Sized(Text(OneIn(10) ? 300 : 8));
    }
    return out;
  }

  std::string Number(bool floats) {
    if (!floats) return Varint(random_() >> Below(64), Stretch(10));
    std::string out(4, 0);
    for (char& c : out) c = static_cast<char>(Below(256));
    return out;
  }

  std::string MakeNumbers(bool floats) {
    std::string out, run;
    for (uint64_t i = OneIn(3) ? 3 : FewValues(); i > 0; --i) {
      if (OneIn(20)) out += Unknown(2);
      if (OneIn(4)) {
        out += Tag(1, floats ? 5 : 0) + Number(floats);
      } else {
        run += Number(floats);
        if (OneIn(4)) out += Tag(1, 2) + Sized(std::exchange(run, {}));
      }
    }
    if (!run.empty()) out += Tag(1, 2) + Sized(run);
    return out;
  }

  std::mt19937_64 random_;
};

// TensorFlow's own parser takes the first run alone where another one follows.
TEST_CASE("fault 13: a packed list in several runs, or with single values, is read whole") {
  const std::string two = Varint(1) + Varint(300), one = Varint(3);
  const std::string lists[] = {
      Field(1, two) + Field(1, one),
      Field(1, two) + Tag(1, 0) + one,
      Tag(1, 0) + Varint(1) + Field(1, Varint(300) + one),
      Field(1, Varint(1)) + Field(1, "") + Field(1, Varint(300)) + Field(1, one),
  };
  for (const std::string& list : lists) {
    const std::string record = Example(Entry("s", Field(3, list)));
    for (const ExampleFeature& feature :
         {ExampleFeature{"s", DType::kInt64, 3}, ExampleFeature{"s", DType::kInt64, -1, true}}) {
      const ParsedExample ours = ParseByPenstock(record, {feature});
      CAPTURE(ours.message);
      REQUIRE(ours.verdict == ParsedExample::Verdict::kFine);
      CHECK(ours.values[0].ints == std::vector<int64_t>{1, 300, 3});
      CHECK(ParseByProtobuf(record, {feature}).values == ours.values);
    }
    // A list of two would be the first run alone.
    const ParsedExample shorter = ParseByPenstock(record, {{"s", DType::kInt64, 2}});
    CHECK(shorter.verdict == ParsedExample::Verdict::kUnwanted);
  }
}

TEST_CASE("faults 11 to 19: generated and damaged messages get protobuf's verdict and values") {
  const std::vector<ExampleFeature> plans[] = {
      {{"d", DType::kString, 1}, {"s", DType::kInt64, 1}},
      {{"s", DType::kInt64, 3}, {"f", DType::kFloat32, 1}, {"image/encoded", DType::kString, 1}},
      {{"v", DType::kFloat32, 3}, {"", DType::kInt64, 1}, {"\xc3\xa9", DType::kString, 1}},
      {{"label", DType::kInt64, 1}},
      {},
      // Of any length, and several strings.
      {{"d", DType::kString, -1, true},
       {"s", DType::kInt64, -1, true},
       {"f", DType::kFloat32, -1, true}},
      {{"v", DType::kFloat32, -1, true},
       {"label", DType::kInt64, 1},
       {"image/encoded", DType::kString, 2, true}},
  };
  const char* const given = std::getenv("PENSTOCK_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  CAPTURE(seed);
  Generator generator(seed);
  // Parsers that have seen all records before, whose forms and keys they may know.
  std::vector<std::unique_ptr<ExampleParser>> parsers;
  for (const auto& plan : plans) parsers.push_back(std::make_unique<ExampleParser>(plan));
  int verdicts[3] = {};
  for (int i = 0; i < 56000; ++i) {
    std::string record = generator.MakeExample();
    if (i % 2 == 1) record = generator.Damage(record);
    const auto& plan = plans[i % 7];
    const ParsedExample theirs = ParseByProtobuf(record, plan);
    const ParsedExample ours = ParseByPenstock(record, plan);
    ++verdicts[static_cast<int>(theirs.verdict)];
    const ParsedExample again = ParseByPenstock(record, plan, *parsers[i % 7]);
    if (ours.verdict != theirs.verdict || ours.values != theirs.values ||
        again.verdict != theirs.verdict || again.values != theirs.values) {
      CAPTURE(i, ours.message, theirs.message);
      std::string hex;
      for (const char c : record) {
        hex += "0123456789abcdef"[static_cast<uint8_t>(c) >> 4];
        hex += "0123456789abcdef"[c & 15];
      }
      FAIL("the parsers differ on " << hex);
    }
  }
  // All three verdicts were really tried.
  CHECK(verdicts[0] > 2000);
  CHECK(verdicts[1] > 2000);
  CHECK(verdicts[2] > 2000);
}

}  // namespace
}  // namespace penstock::testing
