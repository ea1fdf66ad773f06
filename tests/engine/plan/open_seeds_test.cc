// Which specs leave seeds open, so that nothing can be said of a step.
#include "server/engine/plan/open_seeds.h"

#include <string>

#include "absl/strings/match.h"
#include "google/protobuf/text_format.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

v1::PipelineSpec Spec(const std::string& stages) {
  v1::PipelineSpec spec;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(Stages(stages), &spec));
  return spec;
}

// What a plan of the spec says of it. Functions in Python are no part of these.
std::string Checked(const std::string& stages) {
  const auto plan = PlanText(Stages(stages));
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return std::string(CheckSeedsAreGiven(Spec(stages), (*plan)->spec()).message());
}

TEST_CASE("A seed that is drawn is open, wherever its stage stands") {
  CHECK(Checked("range { stop: 9 } | shuffle { buffer_size: 3 seed: 1 }").empty());
  CHECK(absl::StrContains(Checked("range { stop: 9 } | name: 'mix' shuffle { buffer_size: 3 }"),
                          "stage mix: seed: expected a number, found none"));
  CHECK(absl::StrContains(
      Checked(
          "zip { (| range { stop: 9 } |) (| range { stop: 9 } | shuffle { buffer_size: 2 } |) }"),
      "stage shuffle: seed: expected a number, found none"));
  CHECK(absl::StrContains(
      Checked("range { stop: 9 } | map { let: 'a = value + 1' out: 'u = random_uniform([2])' }"),
      "stage map: out: \"u = random_uniform([2])\": seed: expected a number, found none"));
  CHECK(Checked("range { stop: 9 } | map { out: 'u = random_uniform([2], seed=3)' }").empty());
}

TEST_CASE("What else the plan writes into an expression is no seed") {
  const char* const given = "map { out: 'ids = tokenize(text, \"/a\")' }";
  const char* const planned = "map { out: 'ids = tokenize(text, \"/a\", content=\"9 1\")' }";
  CHECK(CheckSeedsAreGiven(Spec(given), Spec(planned)).ok());
}

TEST_CASE(
    "The seed of a Python function is one like others, in the message that its ops have in "
    "common") {
  const std::string functions[] = {
      "range { stop: 9 } | python { function { name: 'f' SEED } }",
      "from_generator { function { name: 'f' SEED } }",
  };
  for (const std::string& text : functions) {
    const auto with = [&](const std::string& seed) {
      std::string stages = text;
      return Spec(stages.replace(stages.find("SEED"), 4, seed));
    };
    INFO(text);
    // A plan of a function needs its file; of the plan only the spec counts, which has the drawn
    // seed.
    v1::PipelineSpec planned = with("seed: 5");
    planned.mutable_stage(planned.stage_size() - 1)->set_name("f");
    CHECK(CheckSeedsAreGiven(with("seed: 5"), planned).ok());
    CHECK(absl::StrContains(CheckSeedsAreGiven(with(""), planned).message(),
                            "stage f: seed: expected a number, found none"));
  }
}

}  // namespace
}  // namespace penstock::test
