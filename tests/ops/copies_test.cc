// Elements that come more than once: which of their draws are equal is what tf.data makes of it
// (tests/golden/make_copies_goldens.py); what they draw depends on the element and the copy, and on
// nothing else.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "io/element/element_file.h"
#include "server/engine/plan/cursor.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

using Json = nlohmann::json;

std::shared_ptr<const Plan> MustPlan(const std::string& spec) {
  auto plan = PlanText(spec);
  INFO(spec << plan.status().ToString());
  REQUIRE(plan.ok());
  return *plan;
}

// The values of each tensor, which are int64 numbers, by its name.
std::map<std::string, std::vector<int64_t>> ValuesOf(const std::string& spec, int workers) {
  const auto plan = MustPlan(spec);
  const RunResult result = RunPlan(plan, {.workers = workers});
  INFO(spec << result.status.ToString());
  REQUIRE(result.finished);
  REQUIRE(result.status.ok());
  std::map<std::string, std::vector<int64_t>> values;
  for (size_t i = 0; i < plan->tensors().size(); ++i)
    values[plan->tensors()[i].name] = Int64s(result, i);
  return values;
}

// The same number for equal values, counted by their first places.
std::vector<int64_t> Classes(const std::vector<int64_t>& values) {
  std::map<int64_t, int64_t> known;
  std::vector<int64_t> classes;
  for (const int64_t value : values)
    classes.push_back(known.emplace(value, static_cast<int64_t>(known.size())).first->second);
  return classes;
}

TEST_CASE("Copies of an element draw anew where they do in tf.data") {
  const Json document = Json::parse(testing::ReadGolden("copies.json"));
  REQUIRE(document["cases"].size() >= 60);
  for (const Json& golden : document["cases"]) {
    const std::string spec = golden["spec"].get<std::string>();
    for (const int workers : {1, 3}) {
      const auto values = ValuesOf(spec, workers);
      INFO(golden["name"].get<std::string>() << "\n" << spec);
      CHECK(values.at("v") == golden["v"].get<std::vector<int64_t>>());
      for (const auto& [name, classes] : golden["draws"].items()) {
        INFO(name << " " << classes.dump() << "\nfound " << Json(Classes(values.at(name))).dump());
        CHECK(Classes(values.at(name)) == classes.get<std::vector<int64_t>>());
      }
    }
  }
}

std::string Spec(const std::string& text) {
  const std::string draw = "random_uniform(%sdtype='int64', maxval=1000000000000, seed=5)";
  const auto map = [&draw](const std::string& shape) {
    return absl::StrCat("map { out: \"r = ", absl::StrReplaceAll(draw, {{"%s", shape}}), "\" }");
  };
  return Stages(absl::StrReplaceAll(text, {{"$DRAW_FOUR", map("[4], ")}, {"$DRAW", map("")}}));
}

bool IsAllOne(const v1::Fingerprint& fingerprint) {
  return std::all_of(fingerprint.meanings().stage().begin(), fingerprint.meanings().stage().end(),
                     [](const v1::StageMeaning& stage) { return stage.number() == 1; });
}

// What the release drew that had no marks: FNV-1a of the numbers.
TEST_CASE("A pipeline in which no element comes twice draws as it did before there were marks") {
  const struct {
    uint64_t hash;
    const char* text;
  } kDrawn[] = {
      {0xf585a639f8237797, "range { stop: 40 } | $DRAW"},
      {0x82a6180fbf16738f, "range { stop: 20 } | $DRAW | repeat { count: 3 }"},
      {0xa79f5aaaa335bdf9,
       "range { stop: 20 } | filter { predicate: 'value % 3 != 0' } | $DRAW | repeat { "
       "count: 2 }"},
      {0xc7fa1e7ca8e18e52,
       "range { stop: 9 } | map { out: 'v = value + [0, 1, 2]' } | unbatch {} | $DRAW"},
      {0x5c3834efd33c86c,
       "range { stop: 9 } | flat_map { (| map { out: 'v = value + [0, 1, 2]' } | unbatch {} "
       "|) } | $DRAW | repeat { count: 2 }"},
      {0x5c3834efd33c86c,
       "range { stop: 9 } | repeat { count: 2 } | flat_map { (| map { out: 'v = value + [0, "
       "1, 2]' } | unbatch {} | $DRAW |) }"},
      {0x3abdfcc76ab7b2f7,
       "range { stop: 9 } | flat_map { (| zip { (| range { stop: 3 } |) (| window_part {} | "
       "repeat {} |) } | $DRAW |) }"},
      {0xa8de267422c57f40,
       "range { stop: 9 } | flat_map { (| zip { (| range { stop: 3 } |) (| window_part {} | "
       "repeat {} |) } |) } | $DRAW | repeat { count: 2 }"},
      {0x19a08664f1c802f5,
       "range { stop: 9 } | interleave { (| map { out: 'v = value + [0, 1, 2]' } | unbatch "
       "{} | enumerate {} |) cycle_length: 3 } | $DRAW"},
      {0x641ae366dcd4f3fd,
       "range { stop: 20 } | window { size: 4 (| take { count: 3 } |) } | $DRAW | repeat { "
       "count: 2 }"},
      {0xf5b42fbc3d748fbc,
       "range { stop: 20 } | map { out: 'v = value' } | group_by_window { key: 'v % 3' "
       "window_size: 4 (| batch { batch_size: 2 } | unbatch {} |) } | $DRAW"},
      {0x298e3079dec21ed9,
       "range { stop: 20 } | batch { batch_size: 4 } | $DRAW_FOUR | unbatch {} | repeat { "
       "count: 2 }"},
      {0xd3f44230ab96c524,
       "zip { (| range { stop: 20 } |) (| range { stop: 3 } | repeat {} |) } | $DRAW | "
       "repeat { count: 2 }"},
      {0x5f450824ccedc28b,
       "concatenate { (| range { stop: 5 } |) (| range { stop: 5 } |) } | $DRAW | repeat { "
       "count: 2 }"},
      {0x2d5c0b93528f9599, "range { stop: 7 } | cache {} | repeat { count: 3 } | $DRAW"},
      {0x6f829e915da33ba2,
       "range { stop: 12 } | scan { initial_state { name: 's' int_value: 0 } state: 's = s + "
       "value' out: 'v = value' } | $DRAW | repeat { count: 2 }"},
      {0xf41b4d9737d6488f,
       "range { stop: 7 } | enumerate {} | filter { predicate: 'feature(\\\"0\\\") >= 0' } | "
       "$DRAW | repeat { count: 2 }"},
  };
  for (const auto& [hash, text] : kDrawn) {
    INFO(text);
    const std::string spec = Spec(absl::StrCat(text, " | batch { batch_size: 200 }"));
    const auto plan = MustPlan(spec);
    CHECK(IsAllOne(*FingerprintOf(*plan)));
    const RunResult result = RunPlan(plan, {.workers = 2});
    REQUIRE(result.batches.size() == 1);
    for (size_t i = 0; i < plan->tensors().size(); ++i) {
      if (plan->tensors()[i].name != "r") continue;
      const std::vector<int64_t> drawn = result.batches[0].As<int64_t>(i);
      CHECK(testing::Fnv1a(drawn.data(), drawn.size() * sizeof(int64_t)) == hash);
    }
  }
}

TEST_CASE("A copy draws the same wherever the order puts its element") {
  // By element, what its copies draw, in their order.
  const auto drawn = [](const std::string& order) {
    const std::string nested = "flat_map { (| repeat { count: 3 } |) }";
    const auto values = ValuesOf(
        Spec(absl::StrCat("range { stop: 200 } | ", order, nested,
                          " | map { out: 'v = value' out: \"r = random_uniform(dtype='int64', "
                          "maxval=1000000000000, seed=5)\" }")),
        3);
    std::map<int64_t, std::vector<int64_t>> by_element;
    for (size_t i = 0; i < values.at("v").size(); ++i)
      by_element[values.at("v")[i]].push_back(values.at("r")[i]);
    return by_element;
  };
  const auto plain = drawn("");
  CHECK(plain.size() == 200);
  CHECK(plain == drawn("shuffle { buffer_size: 50 seed: 1 } | "));
  CHECK(plain == drawn("shuffle { buffer_size: 7 seed: 2 } | interleave { (| take { count: 1 } |) "
                       "cycle_length: 5 } | "));
}

TEST_CASE("Where copies draw, a cursor of before is refused with the stage that draws") {
  for (const char* const text :
       {"range { stop: 20 } | flat_map { (| repeat { count: 2 } |) } | $DRAW",
        "range { stop: 20 } | flat_map { (| $DRAW | repeat { count: 2 } |) }",
        "range { stop: 20 } | window { size: 3 shift: 1 (| take { count: 2 } |) } | $DRAW",
        "range { stop: 20 } | $DRAW | repeat { count: 2 } | repeat { count: 2 }",
        "range { stop: 20 } | flat_map { (| range { stop: 2 } |) } | cache {} | $DRAW"}) {
    INFO(text);
    const v1::Fingerprint fingerprint = *FingerprintOf(*MustPlan(Spec(text)));
    CHECK_FALSE(IsAllOne(fingerprint));
    v1::Fingerprint before = fingerprint;
    before.clear_meanings();
    const std::string cursor = *CursorMaker(before).Make(3, Position({1}));
    const absl::Status status = ReadCursor(cursor, fingerprint, ChangedWork::kAllow).status();
    INFO(status.ToString());
    CHECK(absl::IsFailedPrecondition(status));
    CHECK(absl::StrContains(
        status.message(),
        "stage map: the op map means something else in this release (each copy of an element "
        "draws for itself): expected meaning 2, found 1"));
  }
  // Nothing draws: nothing is changed.
  for (const char* const text :
       {"range { stop: 20 } | flat_map { (| repeat { count: 2 } |) }",
        "range { stop: 20 } | window { size: 3 shift: 1 (| take { count: 2 } |) }"}) {
    INFO(text);
    CHECK(IsAllOne(*FingerprintOf(*MustPlan(Spec(text)))));
  }
}

// Elements that were kept by another meaning have other paths.
TEST_CASE("What keeps copies in a file is called otherwise where something draws behind it") {
  const ScratchFolder folder;
  const std::string kept =
      "range { stop: 9 } | flat_map { (| repeat { count: 2 } |) } | cache { filename: "
      "'FOLDER/copies' }";
  const auto count = [&folder] {
    size_t elements = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "copies"))
      elements += entry.path().extension() == kElementFileSuffix ? 1 : 0;
    return elements;
  };
  const auto run = [&folder](const std::string& text) {
    const std::string spec = absl::StrReplaceAll(Spec(text), {{"FOLDER", folder.path()}});
    const RunResult result = RunText(spec);
    INFO(spec << result.status.ToString());
    REQUIRE(result.finished);
    return result;
  };
  run(kept);
  CHECK(count() == 1);
  const std::vector<int64_t> first = Int64s(run(kept + " | $DRAW"), 0);
  CHECK(std::set<int64_t>(first.begin(), first.end()).size() == 18);
  CHECK(count() == 2);
  // What was kept draws the same again.
  CHECK(Int64s(run(kept + " | $DRAW"), 0) == first);
  CHECK(count() == 2);
}

TEST_CASE("Rows that fill up a last batch from the beginning draw for themselves behind it") {
  const auto values = ValuesOf(
      Spec("range { stop: 3 } | map { out: 'v = value' out: \"a = random_uniform(dtype='int64', "
           "maxval=1000000000000, seed=6)\" } | batch { batch_size: 8 remainder: WRAP } | map { "
           "out: 'v = v' out: 'a = a' out: \"r = random_uniform(dtype='int64', "
           "maxval=1000000000000, seed=5)\" }"),
      2);
  CHECK(values.at("v") == std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1});
  CHECK(Classes(values.at("a")) == std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1});
  CHECK(Classes(values.at("r")) == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("Each element of padding draws for itself") {
  const auto values = ValuesOf(
      Spec("range { stop: 3 } | map { out: 'v = value' } | pad_to_cardinality { cardinality: 9 } | "
           "map { out: 'v = v' out: \"r = random_uniform(dtype='int64', maxval=1000000000000, "
           "seed=5)\" }"),
      2);
  const std::vector<int64_t>& drawn = values.at("r");
  CHECK(std::set<int64_t>(drawn.begin(), drawn.end()).size() == 9);
}

}  // namespace
}  // namespace penstock::test
