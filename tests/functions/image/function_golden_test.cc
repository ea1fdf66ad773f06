// Results of TensorFlow (tests/golden/make_image_function_goldens.py) and of Pillow and torchvision
// (make_augment_goldens.py) for tables of expressions, over images of sizes that the program knows
// and that only the data tells.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/row_shape.h"
#include "server/expr/program.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/hex.h"

namespace penstock::testing {
namespace {

using Json = nlohmann::json;

struct Tensor {
  TensorType type;
  std::vector<uint8_t> bytes;
};

Tensor Read(const Json& json) {
  Tensor tensor{{*DTypeFromName(json["dtype"].get<std::string>()), {}}, {}};
  if (json.contains("bytes")) tensor.bytes = test::BytesFromHex(json["bytes"].get<std::string>());
  for (const auto& size : json["shape"]) tensor.type.shape.push_back(size.get<int64_t>());
  return tensor;
}

template <typename T>
double Worst(const std::vector<uint8_t>& got, const std::vector<uint8_t>& want) {
  double worst = 0;
  for (size_t i = 0; i + sizeof(T) <= want.size(); i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, &got[i], sizeof(T));
    std::memcpy(&b, &want[i], sizeof(T));
    const double difference = std::fabs(static_cast<double>(a) - static_cast<double>(b));
    const double size =
        std::is_integral_v<T> ? 1 : std::max(1.0, std::fabs(static_cast<double>(b)));
    if (!(difference / size <= worst)) worst = difference / size;
  }
  return worst;
}

// The greatest distance of two values, of floats relative to those above 1.
double Distance(DType dtype, const std::vector<uint8_t>& got, const std::vector<uint8_t>& want) {
  if (got.size() != want.size()) return 1e9;
  if (got == want) return 0;
  switch (dtype) {
    case DType::kUint8:
      return Worst<uint8_t>(got, want);
    case DType::kInt8:
      return Worst<int8_t>(got, want);
    case DType::kUint16:
      return Worst<uint16_t>(got, want);
    case DType::kInt16:
      return Worst<int16_t>(got, want);
    case DType::kFloat32:
      return Worst<float>(got, want);
    case DType::kFloat64:
      return Worst<double>(got, want);
    default:
      return 1e9;
  }
}

// The result of `text` for two rows of the same image, of which the program knows the first
// `num_known` sizes counted from the last.
Tensor Run(const Json& images, const std::string& text, int num_known) {
  Signature signature;
  std::vector<Tensor> tensors;
  for (const auto& [name, image] : images.items()) {
    tensors.push_back(Read(image));
    TensorType type = tensors.back().type;
    for (int axis = 0; axis < 3 - num_known; ++axis) type.shape[axis] = kUnknownSize;
    signature.push_back({name, type});
  }
  constexpr int kRows = 2;
  std::vector<std::vector<uint8_t>> data;
  std::vector<std::vector<RowBytes>> rows;
  std::vector<std::vector<int64_t>> dims;
  std::vector<Column> columns;
  for (const Tensor& tensor : tensors) {
    data.emplace_back(tensor.bytes);
    data.back().insert(data.back().end(), tensor.bytes.begin(), tensor.bytes.end());
    data.back().resize(data.back().size() + 64);
    const size_t bytes = tensor.bytes.size();
    rows.push_back({{data.back().data(), bytes}, {data.back().data() + bytes, bytes}});
    dims.emplace_back();
    for (int r = 0; r < kRows; ++r) {
      dims.back().insert(dims.back().end(), tensor.type.shape.begin(), tensor.type.shape.end());
    }
    Column column;
    if (num_known == 3) {
      column.data = data.back().data();
      column.row_bytes = bytes;
    } else {
      column.rows = rows.back().data();
      column.dims = dims.back().data();
    }
    columns.push_back(column);
  }
  expr::MapSource map;
  map.stage = "map";
  map.outs = {"y = " + text};
  const auto program = expr::Compile(signature, {&map, 1});
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  Tensor result{(*program)->output()[0].type, {}};
  const auto size = NumBytes(result.type);
  std::vector<uint8_t> memory(size ? kRows * *size + 64 : 0, 0xA5);
  Column out;
  out.data = memory.data();
  out.row_bytes = size ? *size : 0;
  Arena arena;
  const RowStatus status = (*program)->Run(kRows, columns, {&out, 1}, arena);
  INFO(status.status.ToString());
  REQUIRE(status.ok());
  if (size) {
    CHECK(memory[kRows * *size] == 0xA5);
    CHECK(std::memcmp(memory.data(), memory.data() + *size, *size) == 0);
    result.bytes.assign(memory.begin(), memory.begin() + static_cast<int64_t>(*size));
  } else {
    result.type.shape = RowDims(result.type, out, 1);
    result.bytes.assign(out.row(1), out.row(1) + out.row_size(1));
  }
  return result;
}

void CheckGoldens(const char* file) {
  const Json document = Json::parse(ReadGolden(file));
  REQUIRE(document["cases"].size() > 100);
  for (const auto& json : document["cases"]) {
    const std::string text = json["text"].get<std::string>();
    const Tensor want = Read(json);
    for (const int num_known : {3, 1, 0}) {
      CAPTURE(text, num_known);
      const Tensor got = Run(document["images"], text, num_known);
      CHECK(TypeToString(got.type) == TypeToString(want.type));
      if (json.contains("hash")) {
        const uint64_t hash = std::stoull(json["hash"].get<std::string>(), nullptr, 16);
        CHECK(Fnv1a(got.bytes.data(), got.bytes.size()) == hash);
      } else {
        CHECK(Distance(want.type.dtype, got.bytes, want.bytes) <= json["tolerance"].get<double>());
      }
    }
  }
}

TEST_CASE("Image functions give what TensorFlow gives") { CheckGoldens("image_functions.json"); }

TEST_CASE("Functions that augment images give what Pillow and torchvision give") {
  CheckGoldens("image_augment.json");
}

}  // namespace
}  // namespace penstock::testing
