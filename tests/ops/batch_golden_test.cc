// tf.data's batches of features of any length (tests/golden/make_batch_goldens.py).
#include <cstring>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/row_shape.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/hex.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

using Json = nlohmann::json;

std::vector<int64_t> Numbers(const std::string& part) {
  std::vector<int64_t> numbers(part.size() / sizeof(int64_t));
  std::memcpy(numbers.data(), part.data(), numbers.size() * sizeof(int64_t));
  return numbers;
}

template <typename T>
Json Integers(const std::string& bytes) {
  Json values = Json::array();
  for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    values.push_back(value);
  }
  return values;
}

Json Values(DType dtype, const std::string& bytes) {
  switch (dtype) {
    case DType::kInt64:
      return Integers<int64_t>(bytes);
    case DType::kBool:
    case DType::kUint8:
      return Integers<uint8_t>(bytes);
    case DType::kInt8:
      return Integers<int8_t>(bytes);
    case DType::kInt16:
      return Integers<int16_t>(bytes);
    case DType::kUint16:
      return Integers<uint16_t>(bytes);
    case DType::kInt32:
      return Integers<int32_t>(bytes);
    case DType::kUint32:
      return Integers<uint32_t>(bytes);
    case DType::kUint64:
      return Integers<uint64_t>(bytes);
    default:
      break;
  }
  Json values = Json::array();
  for (size_t i = 0; i < bytes.size(); i += DTypeSize(dtype))
    values.push_back(ToHex(std::string_view(bytes).substr(i, DTypeSize(dtype))));
  return values;
}

// One tensor as the goldens write it: `golden` says whether the values themselves or their hash.
Json ToJson(const BatchTensor& tensor, const std::vector<std::string>& parts, uint32_t rows,
            const Json& golden) {
  Json json = {{"dtype", DTypeName(tensor.type.dtype)}};
  auto part = parts.begin();
  if (tensor.type.dtype == DType::kString) {
    const std::vector<int64_t> offsets = Numbers(*part++);
    json["values"] = Json::array();
    for (size_t i = 0; i + 1 < offsets.size(); ++i)
      json["values"].push_back(ToHex(part->substr(offsets[i], offsets[i + 1] - offsets[i])));
    CHECK(offsets.back() == static_cast<int64_t>(part->size()));
  } else if (golden["values"].is_string()) {
    json["values"] =
        absl::StrCat(absl::Hex(testing::Fnv1a(part->data(), part->size()), absl::kZeroPad16));
  } else {
    json["values"] = Values(tensor.type.dtype, *part);
  }
  ++part;
  Shape shape = tensor.type.shape;
  if (tensor.kind == TensorKind::kRagged) {
    for (int axis = 0; axis < tensor.ragged_rank; ++axis)
      json["splits"].push_back(Numbers(*part++));
    json["inner"] = std::vector<int64_t>(shape.begin() + tensor.ragged_rank + 1, shape.end());
    return json;
  }
  if (HasUnknownAxes(shape)) {
    const std::vector<int64_t> sizes = Numbers(*part);
    CHECK(FitsShape(Shape(shape.begin() + tensor.batched, shape.end()),
                    Shape(sizes.begin() + tensor.batched, sizes.end())));
    shape.assign(sizes.begin(), sizes.end());
  } else if (tensor.batched) {
    shape[0] = rows;
  }
  json["shape"] = std::vector<int64_t>(shape.begin(), shape.end());
  return json;
}

TEST_CASE("batches of features of any length are those of tf.data") {
  const Json document = Json::parse(testing::ReadGolden("batch.json"));
  ScratchFolder folder;
  for (const auto& [name, digits] : document["files"].items())
    WriteFile(folder / name, FromHex(digits.get<std::string>()));
  REQUIRE(document["cases"].size() > 50);
  for (const Json& golden : document["cases"]) {
    const std::string spec = Stages(absl::StrReplaceAll(
        golden["spec"].get<std::string>(), {{"FOLDER/", absl::StrCat(folder.path(), "/")}}));
    INFO(golden["spec"].get<std::string>());
    auto plan = PlanText(spec);
    INFO(plan.status().ToString());
    REQUIRE(plan.ok());
    const std::vector<BatchTensor>& tensors = (*plan)->tensors();
    for (const int workers : {1, 3}) {
      const RunResult result = RunPlan(*plan, {.workers = workers});
      CHECK(result.finished);
      INFO(result.status.ToString());
      const std::string error = golden.value("error", "");
      CHECK(result.status.ok() == error.empty());
      CHECK(absl::StrContains(result.status.message(), error));
      if (!error.empty()) CHECK(absl::StrContains(result.status.message(), "record"));
      REQUIRE(result.batches.size() == golden["steps"].size());
      for (size_t step = 0; step < result.batches.size(); ++step) {
        const Batch& batch = result.batches[step];
        REQUIRE(golden["steps"][step].size() == tensors.size());
        for (size_t i = 0; i < tensors.size(); ++i) {
          INFO("step " << step << ", tensor " << tensors[i].name);
          const Json& wanted = golden["steps"][step][tensors[i].name];
          CHECK(ToJson(tensors[i], batch.parts[i], batch.info.rows, wanted).dump() ==
                wanted.dump());
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::test
