// tf.data's elements for sources and order ops, and for chains of them
// (tests/golden/make_order_goldens.py).
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/hex.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

using Json = nlohmann::json;

void WriteInFolder(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  WriteFile(path, bytes);
}

// One step as the goldens write it: paths from `folder` on.
Json ToJson(const Plan& plan, const Batch& batch, const std::string& folder) {
  Json tensors = Json::object();
  for (size_t i = 0; i < plan.tensors().size(); ++i) {
    Json& values = tensors[plan.tensors()[i].name] = Json::array();
    const DType dtype = plan.tensors()[i].type.dtype;
    // The values of all rows, or the offsets of all strings.
    const std::string& bytes = batch.parts[i][0];
    std::vector<int64_t> numbers(bytes.size() / sizeof(int64_t));
    if (!numbers.empty())
      std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(int64_t));
    if (dtype == DType::kString) {
      for (size_t s = 0; s + 1 < numbers.size(); ++s) {
        const std::string value = batch.parts[i][1].substr(numbers[s], numbers[s + 1] - numbers[s]);
        values.push_back(ToHex(std::string(absl::StripPrefix(value, folder + "/"))));
      }
    } else if (dtype == DType::kInt64) {
      for (const int64_t value : numbers) values.push_back(value);
    } else {
      for (size_t at = 0; at < bytes.size(); at += DTypeSize(dtype))
        values.push_back(ToHex(std::string_view(bytes).substr(at, DTypeSize(dtype))));
    }
  }
  return {{"rows", batch.info.rows}, {"tensors", tensors}};
}

void CheckGoldens(const std::string& file, size_t cases_min) {
  const Json document = Json::parse(testing::ReadGolden(file));
  ScratchFolder folder;
  for (const auto& [name, digits] : document["files"].items())
    WriteInFolder(folder / name, FromHex(digits.get<std::string>()));
  REQUIRE(document["cases"].size() >= cases_min);
  for (const Json& golden : document["cases"]) {
    const std::string spec = absl::StrReplaceAll(golden["spec"].get<std::string>(),
                                                 {{"FOLDER/", absl::StrCat(folder.path(), "/")}});
    INFO(golden["name"].get<std::string>() << "\n" << spec);
    const std::string error = golden.value("error", "");
    auto plan = PlanText(spec);
    if (!plan.ok()) {
      // An error in the spec: nothing runs.
      INFO(plan.status().ToString());
      CHECK(!error.empty());
      CHECK(absl::StrContains(plan.status().message(), error));
      CHECK(golden["steps"].empty());
      continue;
    }
    CHECK(Json::parse((*plan)->structure()) == golden["structure"]);
    const RunResult result = RunPlan(*plan);
    CHECK(result.finished);
    INFO(result.status.ToString());
    CHECK(result.status.ok() == error.empty());
    CHECK(absl::StrContains(result.status.message(), error));
    Json steps = Json::array();
    for (const Batch& batch : result.batches) steps.push_back(ToJson(**plan, batch, folder.path()));
    CHECK(steps.dump() == golden["steps"].dump());
  }
}

TEST_CASE("Sources and order ops make the elements that tf.data makes") {
  CheckGoldens("order.json", 300);
}

// tests/golden/make_grouping_goldens.py
TEST_CASE(
    "Ops that choose among datasets and gather elements make the elements that tf.data makes") {
  CheckGoldens("grouping.json", 240);
}

// tests/golden/make_kept_goldens.py
TEST_CASE("Ops that keep elements make the elements that tf.data makes, whatever is kept already") {
  CheckGoldens("kept.json", 200);
}

}  // namespace
}  // namespace penstock::test
