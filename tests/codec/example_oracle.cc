#include "tests/codec/example_oracle.h"

#include <cstring>
#include <memory>

#include <google/protobuf/stubs/logging.h>

#include "example.pb.h"

namespace penstock::testing {

namespace {

// A row of base/column.h.
void TakeGathered(DType kind, const ExampleValue& from, ParsedExample::Value* value) {
  if (kind == DType::kInt64) {
    value->ints.resize(from.count);
    if (from.count > 0) std::memcpy(value->ints.data(), from.bytes, from.size);
  } else if (kind == DType::kFloat32) {
    value->float_bits.resize(from.count);
    if (from.count > 0) std::memcpy(value->float_bits.data(), from.bytes, from.size);
  } else {
    const uint8_t* text = from.bytes + from.count * sizeof(uint32_t);
    for (uint32_t i = 0; i < from.count; ++i) {
      uint32_t size;
      std::memcpy(&size, from.bytes + i * sizeof(size), sizeof(size));
      value->strings.emplace_back(reinterpret_cast<const char*>(text), size);
      text += size;
    }
    if (text != from.bytes + from.size) value->strings.emplace_back("not all of the row");
  }
}

}  // namespace

ParsedExample ParseByProtobuf(const std::string& record,
                              const std::vector<ExampleFeature>& features) {
  ParsedExample result;
  const google::protobuf::LogSilencer silencer;
  TestExample example;
  if (!example.ParseFromString(record)) {
    result.verdict = ParsedExample::Verdict::kMalformed;
    return result;
  }
  for (const ExampleFeature& feature : features) {
    ParsedExample::Value value;
    const auto& map = example.features().feature();
    const auto found = map.find(feature.key);
    if (found == map.end() || found->second.kind_case() == TestFeature::KIND_NOT_SET) {
      result.values.push_back(value);
      continue;
    }
    value.present = true;
    const TestFeature& held = found->second;
    int64_t count = 0;
    DType kind = DType::kInvalid;
    switch (held.kind_case()) {
      case TestFeature::kBytesList:
        kind = DType::kString;
        count = held.bytes_list().value_size();
        if (feature.gathered) {
          value.strings.assign(held.bytes_list().value().begin(), held.bytes_list().value().end());
        } else if (count > 0) {
          value.bytes = held.bytes_list().value(0);
        }
        break;
      case TestFeature::kInt64List:
        kind = DType::kInt64;
        for (const int64_t number : held.int64_list().value()) value.ints.push_back(number);
        count = held.int64_list().value_size();
        break;
      default:
        kind = DType::kFloat32;
        for (const float number : held.float_list().value()) {
          uint32_t bits;
          std::memcpy(&bits, &number, sizeof(bits));
          value.float_bits.push_back(bits);
        }
        count = held.float_list().value_size();
    }
    if (kind != feature.kind ||
        (count != feature.count && feature.count != ExampleFeature::kAnyCount)) {
      result.verdict = ParsedExample::Verdict::kUnwanted;
      result.message = feature.key;
      result.values.clear();
      return result;
    }
    result.values.push_back(value);
  }
  return result;
}

ParsedExample ParseByPenstock(const std::string& record,
                              const std::vector<ExampleFeature>& features) {
  return ParseByPenstock(record, features, ExampleParser(features));
}

ParsedExample ParseByPenstock(const std::string& record,
                              const std::vector<ExampleFeature>& features,
                              const ExampleParser& parser) {
  const std::unique_ptr<uint8_t[]> data(new uint8_t[record.size()]);
  std::memcpy(data.get(), record.data(), record.size());
  std::vector<ExampleValue> values(features.size());
  std::vector<std::vector<int64_t>> ints(features.size());
  std::vector<std::vector<uint32_t>> floats(features.size());
  std::vector<void*> numbers(features.size());
  Arena arena;
  for (size_t i = 0; i < features.size(); ++i) {
    if (features[i].gathered) continue;
    ints[i].resize(features[i].kind == DType::kInt64 ? features[i].count : 0);
    floats[i].resize(features[i].kind == DType::kFloat32 ? features[i].count : 0);
    if (features[i].kind == DType::kInt64) numbers[i] = ints[i].data();
    if (features[i].kind == DType::kFloat32) numbers[i] = floats[i].data();
  }
  ParsedExample result;
  const absl::Status status =
      parser.Parse(data.get(), record.size(), values.data(), numbers.data(), &arena);
  if (!status.ok()) {
    result.message = std::string(status.message());
    result.verdict = result.message.rfind("feature ", 0) == 0 ? ParsedExample::Verdict::kUnwanted
                                                              : ParsedExample::Verdict::kMalformed;
    return result;
  }
  for (size_t i = 0; i < features.size(); ++i) {
    ParsedExample::Value value;
    value.present = values[i].present;
    if (value.present) {
      if (features[i].gathered) {
        TakeGathered(features[i].kind, values[i], &value);
        result.values.push_back(value);
        continue;
      }
      if (features[i].kind == DType::kString) {
        value.bytes.assign(reinterpret_cast<const char*>(values[i].bytes), values[i].size);
      }
      value.ints = ints[i];
      value.float_bits = floats[i];
    }
    result.values.push_back(value);
  }
  return result;
}

}  // namespace penstock::testing
