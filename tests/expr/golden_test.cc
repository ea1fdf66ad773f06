// NumPy's results for a table of expressions (tests/golden/make_expr_goldens.py).
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "server/expr/compile.h"
#include "tests/expr/instruction_sets.h"
#include "tests/support/catch.h"
#include "tests/support/hex.h"
#include "tests/support/tree.h"

namespace penstock::expr {
namespace {

using Json = nlohmann::json;

TensorType TypeOf(const Json& json) {
  TensorType type;
  type.dtype = DTypeFromName(json["dtype"].get<std::string>()).value();
  for (const auto& size : json["shape"]) type.shape.push_back(size.get<int64_t>());
  return type;
}

// The distance in units of the last place; NaN equals NaN.
template <typename T, typename Bits>
double UlpDistance(const uint8_t* a, const uint8_t* b) {
  T x, y;
  Bits i, j;
  std::memcpy(&x, a, sizeof(T));
  std::memcpy(&y, b, sizeof(T));
  std::memcpy(&i, a, sizeof(T));
  std::memcpy(&j, b, sizeof(T));
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y) ? 0 : 1e9;
  const auto ordered = [](Bits v) { return v < 0 ? std::numeric_limits<Bits>::min() - v : v; };
  return std::fabs(static_cast<double>(ordered(i)) - static_cast<double>(ordered(j)));
}

bool Near(DType dtype, const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, int ulp) {
  if (a.size() != b.size()) return false;
  const size_t size = DTypeSize(dtype);
  for (size_t i = 0; i < a.size(); i += size) {
    double distance = 0;
    if (dtype == DType::kFloat32) {
      distance = UlpDistance<float, int32_t>(&a[i], &b[i]);
    } else if (dtype == DType::kFloat64) {
      distance = UlpDistance<double, int64_t>(&a[i], &b[i]);
    } else {
      distance = std::memcmp(&a[i], &b[i], size) == 0 ? 0 : 1e9;
    }
    if (distance > ulp) return false;
  }
  return true;
}

TEST_CASE("Expressions give what NumPy gives") {
  std::ifstream file(testing::InTree("tests/golden/expr.json"));
  const Json document = Json::parse(file);
  const int rows = document["rows"].get<int>();

  Signature signature;
  std::vector<std::vector<uint8_t>> data;
  std::vector<Column> columns;
  for (const auto& [name, input] : document["inputs"].items()) {
    signature.push_back({name, TypeOf(input)});
    data.push_back(test::BytesFromHex(input["bytes"].get<std::string>()));
    data.back().resize(data.back().size() + 64);
  }
  for (size_t i = 0; i < data.size(); ++i) {
    columns.push_back({data[i].data(), static_cast<size_t>(*NumBytes(signature[i].type)), nullptr});
  }
  MapSource map;
  map.stage = "map";
  for (const auto& json : document["constants"]) {
    NamedConstant constant;
    constant.name = json["name"].get<std::string>();
    const std::string dtype = json["dtype"].get<std::string>();
    if (!dtype.empty()) constant.dtype = DTypeFromName(dtype).value();
    if (json.contains("value")) constant.float_values = json["value"].get<std::vector<double>>();
    if (json.contains("int_value"))
      constant.int_values = json["int_value"].get<std::vector<int64_t>>();
    constant.has_shape = true;
    for (const auto& size : json["shape"]) constant.shape.push_back(size.get<int64_t>());
    map.constants.push_back(constant);
  }

  const InstructionSet set = GENERATE(from_range(InstructionSets()));
  const ScopedInstructionSet scoped(set);
  REQUIRE(document["cases"].size() > 400);
  for (const auto& json : document["cases"]) {
    const std::string text = json["text"].get<std::string>();
    CAPTURE(set.name, text);
    map.outs = {"y = " + text};
    auto program = CompileFor(signature, {map}, set.lanes);
    CHECKED_ELSE(program.ok()) {
      FAIL_CHECK(program.status().ToString());
      continue;
    }
    const TensorType expected = TypeOf(json);
    CHECKED_ELSE((*program)->output()[0].type == expected) {
      FAIL_CHECK(TypeToString((*program)->output()[0].type) << " for " << TypeToString(expected));
      continue;
    }
    const std::vector<uint8_t> want = test::BytesFromHex(json["bytes"].get<std::string>());
    std::vector<uint8_t> got(want.size() + 64, 0xA5);
    uint8_t* const out[] = {got.data()};
    Arena arena;
    const RowStatus status = (*program)->Run(rows, columns, out, arena);
    REQUIRE(status.ok());
    // Nothing is written behind the last row.
    CHECK(got[want.size()] == 0xA5);
    got.resize(want.size());
    const DType dtype = expected.dtype;
    CHECKED_ELSE(Near(dtype, got, want, json["ulp"].get<int>())) {
      std::string values;
      const size_t size = DTypeSize(dtype);
      for (size_t i = 0; i < want.size(); i += size) {
        if (std::memcmp(&got[i], &want[i], size) == 0) continue;
        if (dtype == DType::kFloat32) {
          float g, w;
          std::memcpy(&g, &got[i], 4);
          std::memcpy(&w, &want[i], 4);
          values += " " + std::to_string(i / size) + ": " + std::to_string(g) + " for " +
                    std::to_string(w);
        } else if (dtype == DType::kFloat64) {
          double g, w;
          std::memcpy(&g, &got[i], 8);
          std::memcpy(&w, &want[i], 8);
          values += " " + std::to_string(i / size) + ": " + std::to_string(g) + " for " +
                    std::to_string(w);
        } else {
          int64_t g = 0, w = 0;
          std::memcpy(&g, &got[i], size);
          std::memcpy(&w, &want[i], size);
          values += " " + std::to_string(i / size) + ": " + std::to_string(g) + " for " +
                    std::to_string(w);
        }
        if (values.size() > 300) break;
      }
      FAIL_CHECK(values);
    }
  }
}

}  // namespace
}  // namespace penstock::expr
