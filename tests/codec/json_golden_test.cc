// Drawn documents and what Python's json makes of them (tests/golden/make_json_goldens.py).
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/escaping.h"
#include "base/packed_row.h"
#include "nlohmann/json.hpp"
#include "tests/codec/json_document.h"
#include "tests/support/tree.h"

namespace penstock {
namespace {

using nlohmann::json;
using test::DecodeJsonField;
using test::JsonRow;

struct Golden {
  std::string feature;
  TensorType type;
};

// As json_cases.FEATURES.
const std::map<std::string, Golden>& Features() {
  static const auto* const features = new std::map<std::string, Golden>{
      {"i", {"path: 'i' dtype: 'int64'", {DType::kInt64, {}}}},
      {"f", {"path: 'f' dtype: 'float64'", {DType::kFloat64, {}}}},
      {"g", {"path: 'f' dtype: 'float32'", {DType::kFloat32, {}}}},
      {"b", {"path: 'b' dtype: 'bool'", {DType::kBool, {}}}},
      {"s", {"path: 's' dtype: 'string'", {DType::kString, {}}}},
      {"name", {"path: 'user.name' dtype: 'string'", {DType::kString, {}}}},
      {"dotted", {R"(path: 'a\\.b.c\\[\\]' dtype: 'string')", {DType::kString, {}}}},
      {"list", {"path: 'list' dtype: 'int64' shape: -1", {DType::kInt64, {kUnknownSize}}}},
      {"second", {"path: 'list[1]' dtype: 'int64'", {DType::kInt64, {}}}},
      {"vector", {"path: 'vector' dtype: 'float64' shape: 3", {DType::kFloat64, {3}}}},
      {"nested",
       {"path: 'nested' dtype: 'float64' shape: [-1, -1]",
        {DType::kFloat64, {kUnknownSize, kUnknownSize}, RowForm::kPackedRagged}}},
      {"contents",
       {"path: 'messages[].content' dtype: 'string' shape: -1", {DType::kString, {kUnknownSize}}}},
      {"tokens",
       {"path: 'messages[].tokens' dtype: 'int64' shape: [-1, -1]",
        {DType::kInt64, {kUnknownSize, kUnknownSize}, RowForm::kPackedRagged}}},
      {"first", {"path: 'messages[0].content' dtype: 'string'", {DType::kString, {}}}},
  };
  return *features;
}

json Hex(const std::string& bytes) { return absl::BytesToHexString(bytes); }

json NumberOf(DType dtype, const char* bytes) {
  const auto read = [bytes](auto kind) {
    std::memcpy(&kind, bytes, sizeof(kind));
    return kind;
  };
  if (dtype == DType::kInt64) return read(int64_t{0});
  if (dtype == DType::kBool) return read(uint8_t{0}) != 0;
  const double value = dtype == DType::kFloat32 ? static_cast<double>(read(0.0F)) : read(0.0);
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  std::string big_endian(8, '\0');
  for (int i = 0; i < 8; ++i) big_endian[i] = static_cast<char>(bits >> (56 - 8 * i));
  return Hex(big_endian);
}

// As the golden file has a value.
json Shown(const TensorType& type, const JsonRow& row) {
  const RowBytes bytes{reinterpret_cast<const uint8_t*>(row.bytes.data()), row.bytes.size()};
  if (type.shape.empty())
    return type.dtype == DType::kString ? Hex(row.bytes) : NumberOf(type.dtype, row.bytes.data());
  json values = json::array();
  const auto put = [&type](const PackedValues& packed, json* to) {
    const char* at = reinterpret_cast<const char*>(packed.bytes);
    for (size_t i = 0; i < packed.count; ++i) {
      const size_t size =
          type.dtype == DType::kString ? packed.string_size(i) : DTypeSize(type.dtype);
      to->push_back(type.dtype == DType::kString ? Hex(std::string(at, size))
                                                 : NumberOf(type.dtype, at));
      at += size;
    }
  };
  if (!type.packed()) {
    put(ReadDenseRow(type.dtype, type.shape[0] < 0 ? row.dims[0] : type.shape[0], bytes), &values);
    return values;
  }
  const RaggedRow ragged = ReadRaggedRow(type, bytes);
  json all = json::array();
  put(ragged.values, &all);
  for (size_t i = 0; i + 1 < ragged.splits[0].size(); ++i)
    values.push_back(
        json(all.begin() + ragged.splits[0][i], all.begin() + ragged.splits[0][i + 1]));
  return values;
}

TEST_CASE("Documents and values are those of Python's json") {
  std::ifstream file(testing::InTree("tests/golden/json.json"));
  const json goldens = json::parse(file);
  size_t valid = 0;
  for (const json& golden : goldens["cases"]) {
    const std::string document = absl::HexStringToBytes(golden["document"].get<std::string>());
    INFO(absl::CHexEscape(document));
    for (const auto& [name, feature] : Features()) {
      INFO(name);
      const auto row = DecodeJsonField(absl::StrCat("name: 'x' ", feature.feature), document,
                                       JsonErrors::kStrict);
      if (!golden.contains("values")) {
        CHECK_THAT(std::string(row.status().message()), Catch::StartsWith("not JSON: "));
        continue;
      }
      const json& expected = golden["values"][name];
      if (expected.is_null()) {
        CHECK_THAT(std::string(row.status().message()), Catch::StartsWith("feature \"x\" ("));
        continue;
      }
      CHECK(row.status() == absl::OkStatus());
      if (row.ok()) CHECK(Shown(feature.type, *row) == expected);
    }
    valid += golden.contains("values") ? 1 : 0;
  }
  CHECK(valid > 100);
  CHECK(valid < goldens["cases"].size());
}

}  // namespace
}  // namespace penstock
