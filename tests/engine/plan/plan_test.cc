// What a spec is refused for before anything runs, and what a plan says of itself.
#include "server/engine/plan/plan.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "penstock/v1/tensor.pb.h"
#include "ring/layout.h"
#include "server/engine/plan/plan_change.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

constexpr char kSource[] = "stage { tfrecord { files: 'FOLDER/a' } } ";
constexpr char kParse[] = "stage { parse_example { feature { key: 'n' int64 {} } } } ";

struct BadSpec {
  std::string spec;  // FOLDER stands for the folder with the file `a`
  absl::StatusCode code;
  const char* message;
};

TEST_CASE("A bad spec is refused with its stage, what was expected and what was found") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 4);
  WriteFile(folder / "empty", "");
  const std::string good = absl::StrCat(kSource, kParse);
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  const BadSpec cases[] = {
      {"", kInvalid, "the spec has no stage"},
      {"stage { }", kInvalid, "stage stage: names no op"},
      {"stage { batch { batch_size: 2 } }", kInvalid,
       "stage batch: the first stage must be a source such as tfrecord"},
      {good + kSource, kInvalid, "stage tfrecord_2: a source can only be the first stage"},
      {"stage { name: 'x' tfrecord { files: 'FOLDER/a' } } stage { name: 'x' batch { batch_size: 1 "
       "} }",
       kInvalid, "two stages are called \"x\""},
      {"stage { tfrecord { } }", kInvalid,
       "stage tfrecord: files: expected at least one path or glob, found none"},
      {"stage { tfrecord { files: 'FOLDER/b' } }", absl::StatusCode::kNotFound,
       "stage tfrecord: cannot open FOLDER/b"},
      {"stage { tfrecord { files: 'FOLDER/*.tfrecord' } }", absl::StatusCode::kNotFound,
       "no file matches the glob FOLDER/*.tfrecord"},
      {"stage { tfrecord { files: 'FOLDER' } }", kInvalid,
       "not a regular file but a folder: FOLDER; for the files in it: FOLDER/*"},  // fault 55
      {"stage { tfrecord { files: '/dev/zero' } }", absl::StatusCode::kPermissionDenied,
       "not a regular file: /dev/zero"},
      {"stage { tfrecord { files: 'FOLDER/empty' } }", kInvalid,
       "all 1 files are empty, such as FOLDER/empty"},
      {"stage { tfrecord { files: 'FOLDER/a' cycle_length: 0 } }", kInvalid,
       "cycle_length: expected 1 to 1024, found 0"},
      {"stage { tfrecord { files: 'FOLDER/a' block_length: -1 } }", kInvalid,
       "block_length: expected at least 1, found -1"},
      {good + "stage { shuffle { buffer_size: 0 } }", kInvalid,
       "stage shuffle: buffer_size: expected 1 to"},
      {good + "stage { batch { batch_size: 0 } }", kInvalid,
       "stage batch: batch_size: expected 1 to 16777216, found 0"},
      {good + "stage { repeat { count: -2 } }", kInvalid,
       "stage repeat: count: expected -1 (without end) or at least 0, found -2"},
      {good + "stage { take { count: -2 } }", kInvalid, "stage take: count"},
      {good + "stage { prefetch { buffer_size: 1000 } }", kInvalid,
       "stage prefetch: buffer_size: expected -1 (automatic) to 63, found 1000"},
      {std::string(kSource) + "stage { parse_example { } }", kInvalid,
       "stage parse_example: expected at least 1 feature, found none"},
      {std::string(kSource) + "stage { parse_example { feature { key: 'n' } } }", kInvalid,
       "feature \"n\": expected one of bytes, int64, float, sparse, ragged, indexed and sequence, "
       "found none"},
      {std::string(kSource) + "stage { parse_example { feature { int64 {} } } }", kInvalid,
       "a feature has no key"},
      {std::string(kSource) + "stage { parse_example { feature { key: 'n' int64 {} } feature { "
                              "key: 'n' float {} } } }",
       kInvalid, "feature \"n\" is listed twice"},
      {std::string(kSource) +
           "stage { parse_example { feature { key: 'd' bytes { length: 0 } } } }",
       kInvalid, "feature \"d\": length: expected at least 1, found 0"},
      {std::string(kSource) + "stage { parse_example { feature { key: 'd' bytes { length: 3 "
                              "default_value: 'ab' } } } }",
       kInvalid, "default_value: expected 3 bytes, found 2"},
      {std::string(kSource) + "stage { parse_example { feature { key: 'n' int64 { shape: 3 "
                              "default_value: [1, 2] } } } }",
       kInvalid, "default_value: expected 1 or 3 values, found 2"},
      {std::string(kSource) +
           "stage { parse_example { feature { key: 'n' int64 { shape: [2, -1] } } } }",
       kInvalid, "shape: expected sizes of at least 1 and at most 67108864 values, found (2, ?)"},
      {good + kParse, kInvalid,
       "stage parse_example_2: expected one string scalar, found 1 feature(s), the first \"n\" "
       "int64 ()"},
      {good + "stage { map { } }", kInvalid, "stage map: expected at least one out, found none"},
      {good + "stage { map { constant { name: 'A' } out: 'x = n' } }", kInvalid,
       "constant A: expected one of value, int_value, string_value, npy and text_line, found none"},
      {good + "stage { map { constant { name: 'A' value: 1 dtype: 'float33' } out: 'x = n' } }",
       kInvalid, "found \"float33\""},
      {good + "stage { map { constant { name: 'A' value: [1, 2] shape: 3 } out: 'x = n' } }",
       kInvalid, "expected as many values as the shape (3,) holds, found 2"},
      {good + "stage { map { out: 'x = m + 1' } }", kInvalid,
       "stage \"map\", column 5 of \"x = m + 1\": unknown name \"m\""},
  };
  for (const BadSpec& bad : cases) {
    INFO(bad.spec);
    auto plan = PlanText(absl::StrReplaceAll(bad.spec, {{"FOLDER", folder.path()}}));
    REQUIRE_FALSE(plan.ok());
    INFO(plan.status().ToString());
    CHECK(plan.status().code() == bad.code);
    CHECK(absl::StrContains(std::string(plan.status().message()),
                            absl::StrReplaceAll(bad.message, {{"FOLDER", folder.path()}})));
  }
}

TEST_CASE("fault 63: sizes whose product overflows are refused when the spec is checked") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 4);
  const std::string source = absl::StrReplaceAll(kSource, {{"FOLDER", folder.path()}});
  // Each number is the largest that its field takes: 2^26 values of 2^3 bytes, 2^24 times 2^24.
  const auto plan = PlanText(absl::StrCat(
      source, "stage { parse_example { feature { key: 'n' int64 { shape: 67108864 } } } } ",
      "stage { batch { batch_size: 16777216 drop_remainder: true } } ",
      "stage { batch { batch_size: 16777216 } }"));
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(absl::StrContains(
      plan.status().message(),
      "stage batch_2: the pipeline's output \"n\" overflows: the size of a batch of int64 "
      "(16777216, 16777216, 67108864)"));
}

TEST_CASE("The error of an expression names its stage once") {
  const auto plan = PlanText("stage { range { stop: 4 } } stage { map { out: 'x = m + 1' } }");
  CHECK(absl::StartsWith(plan.status().message(), "stage \"map\", column 5 of \"x = m + 1\": "));
}

TEST_CASE("A plan names stages, element, tensors and sizes") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 4);
  const std::string source = absl::StrReplaceAll(kSource, {{"FOLDER", folder.path()}});
  const char* parse =
      "stage { parse_example { feature { key: 'd' bytes { length: 8 } } feature { key: 'f' float { "
      "shape: [2, 3] default_value: 0 } } } } ";
  auto plan = PlanText(absl::StrCat(
      source, "stage { take { count: 9 } } ", parse,
      "stage { take { count: 8 } } stage { batch { batch_size: 4 } } stage { repeat {} }"));
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  std::vector<std::string> names;
  for (const v1::Stage& stage : (*plan)->spec().stage()) names.push_back(stage.name());
  CHECK(names ==
        std::vector<std::string>{"tfrecord", "take", "parse_example", "take_2", "batch", "repeat"});
  CHECK((*plan)->element() == Signature{{"d", {DType::kUint8, {kUnknownSize, 8}}},
                                        {"f", {DType::kFloat32, {kUnknownSize, 2, 3}}}});
  CHECK((*plan)->tensors()[1].type == TensorType{DType::kFloat32, {4, 2, 3}});
  CHECK((*plan)->slot_bytes() == 4 * 8 + 4 * 24);
  CHECK((*plan)->endless());
  auto dropped = PlanText(absl::StrCat(source, parse,
                                       "stage { batch { batch_size: 4 drop_remainder: true } } "
                                       "stage { repeat {} } stage { take { count: 2 } }"));
  REQUIRE(dropped.ok());
  CHECK((*dropped)->element()[0].type == TensorType{DType::kUint8, {4, 8}});
  CHECK_FALSE((*dropped)->endless());
}

TEST_CASE("The codes of element types are the same in the server, the protos and the ring") {
  for (int code = 1; code <= 14; ++code) {
    const std::string name = DTypeName(static_cast<DType>(code));
    const std::string proto = v1::DataType_Name(static_cast<v1::DataType>(code));
    CHECK("DATA_TYPE_" + absl::AsciiStrToUpper(name) == proto);
  }
  CHECK(static_cast<int>(ring::TensorDType::kBool) == static_cast<int>(DType::kBool));
  CHECK(static_cast<int>(ring::TensorDType::kUint8) == static_cast<int>(DType::kUint8));
  CHECK(static_cast<int>(ring::TensorDType::kInt64) == static_cast<int>(DType::kInt64));
  CHECK(static_cast<int>(ring::TensorDType::kBfloat16) == static_cast<int>(DType::kBfloat16));
  CHECK(static_cast<int>(ring::TensorDType::kFloat32) == static_cast<int>(DType::kFloat32));
  CHECK(static_cast<int>(ring::TensorDType::kFloat64) == static_cast<int>(DType::kFloat64));
  CHECK(static_cast<int>(ring::TensorDType::kString) == static_cast<int>(DType::kString));
}

TEST_CASE("what of a plan may become another one while it runs") {
  const struct {
    const char* from;
    const char* to;
    const char* refused;  // "": it may
  } cases[] = {
      {"range { stop: 9 } | batch { batch_size: 4 }", "range { stop: 9 } | batch { batch_size: 3 }",
       ""},
      {"range { stop: 9 } | batch { batch_size: 4 }", "range { stop: 9 } | batch { batch_size: 5 }",
       "does not fit the ring"},
      {"range { stop: 9 } | take { count: 5 } | batch { batch_size: 4 }",
       "range { stop: 9 } | batch { batch_size: 4 }", "stages cannot be added or left out"},
      {"range { stop: 9 } | batch { batch_size: 4 }",
       "range { stop: 9 } | take { count: 5 } | batch { batch_size: 4 }",
       "stages cannot be added or left out"},
      {"range { stop: 9 } | name: 'a' batch { batch_size: 4 }",
       "range { stop: 9 } | name: 'b' batch { batch_size: 4 }", "found batch \"b\""},
      {"range { stop: 9 } | name: 'a' skip { count: 1 } | batch { batch_size: 4 }",
       "range { stop: 9 } | name: 'a' take { count: 1 } | batch { batch_size: 4 }",
       "skip cannot become another op"},
      {"range { stop: 9 } | batch { batch_size: 2 } | batch { batch_size: 2 drop_remainder: true }",
       "range { stop: 9 } | batch { batch_size: 2 } | batch { batch_size: 1 drop_remainder: true }",
       "an op that takes whole batches"},
      {"range { stop: 9 } | map { out: 'n = value' } | batch { batch_size: 4 }",
       "range { stop: 9 } | map { out: 'n = value * 2' } | batch { batch_size: 4 }", ""},
      {"range { stop: 9 } | map { out: 'n = value' } | batch { batch_size: 4 }",
       "range { stop: 9 } | map { out: 'n = float32(value)' } | batch { batch_size: 4 }",
       "feature n was"},
  };
  for (const auto& c : cases) {
    INFO(c.from << " -> " << c.to);
    const auto from = PlanText(Stages(c.from));
    const auto to = PlanText(Stages(c.to));
    REQUIRE(from.ok());
    REQUIRE(to.ok());
    const absl::Status status = CheckPlanChange(**from, **from, **to);
    CHECK(status.ok() == (*c.refused == 0));
    CHECK_THAT(std::string(status.message()), Catch::Contains(c.refused));
  }
}

TEST_CASE("the inputs of a mixture stay what they are, whatever their weights become") {
  const auto stage = [](const std::string& first, const std::string& weights) {
    const auto plan = PlanText(Stages("sample_from_datasets { (| range { stop: " + first +
                                      " } |) (| range { stop: 5 } |) seed: 1 " + weights + " }"));
    REQUIRE(plan.ok());
    return (*plan)->spec().stage(0);
  };
  const v1::Stage from = stage("4", "weight: 1 weight: 2");
  CHECK(CheckInputs(from, from).ok());
  CHECK(CheckInputs(from, stage("4", "weight: 3 weight: 2")).ok());
  CHECK(CheckInputs(from, stage("6", "weight: 1 weight: 2")).code() ==
        absl::StatusCode::kFailedPrecondition);
}

// Fault 35, of a spec that would take the stack or the memory to be planned.
TEST_CASE("a spec has a limited number of stages, one inside of another, and parts in parts") {
  const auto stages = [](const std::string& stage, int count) {
    std::string text = "stage { range { stop: 3 } } ";
    for (int i = 0; i < count; ++i) absl::StrAppend(&text, stage);
    return text;
  };
  const auto refused = [](const std::string& spec) {
    return std::string(PlanText(spec).status().message());
  };
  CHECK(PlanText(stages("stage { take { count: 2 } } ", 1023)).ok());
  CHECK(refused(stages("stage { take { count: 2 } } ", 1024)) ==
        "too many stages: limit 1024 with those inside of others, found 1025");
  // Deep enough to use up a thread's stack, and with names that fill the memory.
  CHECK(refused(stages("stage { shuffle { buffer_size: 2 seed: 1 } } ", 7000)) ==
        "too many stages: limit 1024 with those inside of others, found 7001");
  CHECK(PlanText(stages("stage { enumerate {} } ", 60)).ok());
  CHECK(
      refused(stages("stage { enumerate {} } ", 100)) ==
      "stage enumerate_65: an element of parts in parts: limit 64 deep, found more; a map between "
      "gives flat ones");
  std::string nested = "stage { range { stop: 3 } } ", end;
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&nested, "stage { flat_map { input { stage { range { stop: 2 } } ");
    absl::StrAppend(&end, "} } } ");
  }
  const std::string why = refused(nested + end);
  INFO(why);
  CHECK(absl::StrContains(why, "stages inside of stages: limit 32 deep, found more"));
}

// What planning so many of these stages takes of this thread's processor time, in nanoseconds: the
// least of some tries.
int64_t PlanningNs(const std::string& stages, int count) {
  std::string spec = "stage { range { stop: 5 } } ";
  for (int i = 0; i < count; ++i) absl::StrAppend(&spec, stages);
  absl::StrAppend(&spec, "stage { batch { batch_size: 5 } }");
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
  };
  int64_t least = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const int64_t begin = now();
    const absl::Status status = PlanText(spec).status();
    least = std::min(least, now() - begin);
    INFO(status.ToString());
    REQUIRE(status.ok());
  }
  return least;
}

TEST_CASE("planning grows with the number of stages, and not with its square") {
  for (const std::string stages : {
           "stage { map { out: 'value = value + 1' } } ",
           "stage { filter { predicate: 'value >= 0' } } ",
           "stage { shuffle { buffer_size: 2 seed: 1 } } ",
           "stage { batch { batch_size: 5 } } stage { unbatch {} } ",
       }) {
    const int few = absl::StrContains(stages, "unbatch") ? 125 : 250;
    INFO(stages);
    const int64_t few_ns = PlanningNs(stages, few), many_ns = PlanningNs(stages, 4 * few);
    INFO(few_ns << " ns, and of four times as many " << many_ns << " ns");
    // By a square, 16 times as much.
    CHECK(many_ns < 8 * few_ns);
  }
}

TEST_CASE("many maps in a row are computed as the same ones in few stages") {
  std::string spec = "stage { range { stop: 5 } } ";
  for (int i = 0; i < 100; ++i)
    absl::StrAppend(&spec, "stage { map { out: 'value = value + 1' } } ");
  absl::StrAppend(&spec, "stage { batch { batch_size: 5 } }");
  CHECK(Int64s(RunText(spec)) == std::vector<int64_t>{100, 101, 102, 103, 104});
}

}  // namespace
}  // namespace penstock::test
