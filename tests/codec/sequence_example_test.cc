// Feature lists against the protobuf library's view of the same bytes, whole and damaged. Set
// PENSTOCK_TEST_SEED to repeat a failure.
#include "server/codec/sequence_example.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <google/protobuf/stubs/logging.h>

#include "example.pb.h"
#include "tests/codec/example_messages.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

// Lists of both sides in one form: for each step its values as bytes; "?" for what is not as
// wanted.
using Steps = std::vector<std::vector<std::string>>;
struct Found {
  bool malformed = false;
  bool unwanted = false;
  std::vector<Steps> lists;
  std::vector<bool> present;

  bool operator==(const Found&) const = default;
};

const std::vector<ExampleFeature> kWanted = {
    {"a", DType::kInt64, -1, true}, {"b", DType::kString, -1, true}, {"c", DType::kInt64, 2, true}};

template <typename T>
std::string BytesOf(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

Found ByProtobuf(const std::string& record) {
  Found found;
  const google::protobuf::LogSilencer silencer;
  TestSequenceExample example;
  if (!example.ParseFromString(record)) {
    found.malformed = true;
    return found;
  }
  for (const ExampleFeature& wanted : kWanted) {
    const auto& map = example.feature_lists().feature_list();
    const auto list = map.find(wanted.key);
    found.present.push_back(list != map.end());
    Steps& steps = found.lists.emplace_back();
    if (list == map.end()) continue;
    for (const TestFeature& feature : list->second.feature()) {
      std::vector<std::string>& values = steps.emplace_back();
      for (const std::string& text : feature.bytes_list().value()) values.push_back(text);
      for (const int64_t number : feature.int64_list().value()) values.push_back(BytesOf(number));
      const bool is_strings = feature.kind_case() == TestFeature::kBytesList;
      const bool is_none = feature.kind_case() == TestFeature::KIND_NOT_SET;
      const bool is_ints = feature.kind_case() == TestFeature::kInt64List;
      if (!is_none && !(wanted.kind == DType::kString ? is_strings : is_ints))
        found.unwanted = true;
      if (wanted.count >= 0 && static_cast<int64_t>(values.size()) != wanted.count)
        found.unwanted = true;
    }
  }
  return found;
}

Found ByPenstock(const std::string& record) {
  Found found;
  // Of exactly the record's size, so that a sanitizer sees any overrun.
  const std::unique_ptr<uint8_t[]> data(new uint8_t[record.size()]);
  std::memcpy(data.get(), record.data(), record.size());
  Arena arena;
  const ExampleParser context(std::vector<ExampleFeature>{});
  const SequenceParser parser(kWanted);
  std::vector<SequenceValue> values(kWanted.size());
  ExampleValue none;
  if (!context.Parse(data.get(), record.size(), &none, nullptr, &arena).ok()) {
    found.malformed = true;
    return found;
  }
  const absl::Status status = parser.Parse(data.get(), record.size(), values.data(), arena);
  found.malformed = !status.ok() && status.message().find("malformed") != std::string::npos;
  found.unwanted = !status.ok() && !found.malformed;
  for (size_t i = 0; status.ok() && i < kWanted.size(); ++i) {
    const SequenceValue& value = values[i];
    found.present.push_back(value.values.present);
    Steps& steps = found.lists.emplace_back();
    size_t next = 0;
    const bool is_string = kWanted[i].kind == DType::kString;
    const uint8_t* text = value.values.bytes + value.values.count * sizeof(uint32_t);
    for (uint32_t step = 0; step < value.steps; ++step) {
      std::vector<std::string>& strings = steps.emplace_back();
      for (int64_t j = 0; j < value.lengths[step]; ++j, ++next) {
        if (is_string) {
          uint32_t size;
          std::memcpy(&size, value.values.bytes + next * sizeof(size), sizeof(size));
          strings.emplace_back(reinterpret_cast<const char*>(text), size);
          text += size;
        } else {
          const uint8_t* number = value.values.bytes + next * sizeof(int64_t);
          strings.emplace_back(reinterpret_cast<const char*>(number), sizeof(int64_t));
        }
      }
    }
  }
  return found;
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t bound) { return random_() % bound; }

  std::string Make() {
    std::string out;
    if (Below(2) == 0) out += Field(1, Field(1, Field(1, "id") + Field(2, Feature())));
    for (uint64_t i = Below(8) == 0 ? Below(3) : 1; i > 0; --i) {
      std::string lists;
      for (uint64_t j = Below(5); j > 0; --j) lists += Field(1, Entry());
      out += Field(2, lists);
    }
    return out;
  }

  std::string Damage(std::string record) {
    for (uint64_t i = 1 + Below(2); i > 0 && !record.empty(); --i) {
      const size_t at = Below(record.size());
      if (Below(4) == 0) {
        record.erase(at, 1 + Below(3));
      } else if (Below(3) == 0) {
        record.insert(at, record.substr(Below(record.size()), 1 + Below(9)));
      } else {
        record[at] = static_cast<char>(record[at] ^ 1 << Below(8));
      }
    }
    return record;
  }

 private:
  std::string Feature() {
    std::string list;
    switch (Below(8)) {
      case 0:
        return "";
      case 1:
      case 2:
      case 3:
        for (uint64_t i = Below(4); i > 0; --i) list += Field(1, std::string(Below(5), 'x'));
        return Field(1, list);
      default: {
        std::string run;
        for (uint64_t i = Below(3) == 0 ? Below(4) : 2; i > 0; --i)
          run += Varint(random_() >> Below(64), 1);
        if (Below(6) == 0) run = Varint(7, 1) + run;
        return Field(3, Field(1, run)) + (Below(9) == 0 ? Field(3, Field(1, run)) : "");
      }
    }
  }

  std::string List() {
    std::string list;
    for (uint64_t i = Below(4); i > 0; --i) list += Field(1, Feature());
    return list;
  }

  std::string Entry() {
    const std::string key = Field(1, std::string(1, static_cast<char>('a' + Below(4))));
    const std::string value = Field(2, List());
    switch (Below(9)) {
      case 0:
        return value + key;
      case 1:
        return key;
      case 2:
        return key + value + Field(2, List());
      case 3:
        return key + value + Tag(9, 0) + Varint(1, 1);
      default:
        return key + value;
    }
  }

  std::mt19937_64 random_;
};

TEST_CASE("generated and damaged sequence examples get protobuf's verdict and values") {
  const char* const given = std::getenv("PENSTOCK_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  CAPTURE(seed);
  Generator generator(seed);
  int fine = 0, unwanted = 0, malformed = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string sound = generator.Make();
    const std::string record = i % 2 == 0 ? sound : generator.Damage(sound);
    Found expected = ByProtobuf(record);
    const Found found = ByPenstock(record);
    CAPTURE(i);
    REQUIRE(found.malformed == expected.malformed);
    REQUIRE(found.unwanted == expected.unwanted);
    ++(expected.malformed ? malformed : expected.unwanted ? unwanted : fine);
    if (expected.malformed || expected.unwanted) continue;
    REQUIRE(found.present == expected.present);
    REQUIRE(found.lists == expected.lists);
  }
  // All three kinds are there.
  CHECK(fine > 1000);
  CHECK(unwanted > 1000);
  CHECK(malformed > 1000);
}

}  // namespace
}  // namespace penstock::testing
