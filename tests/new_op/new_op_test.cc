// Ops that were added from outside (CMakeLists.txt here says how) work wherever others do: nothing
// knows its ops by name.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/plan/open_seeds.h"
#include "server/engine/plan/pass_change.h"
#include "server/engine/plan/plan_change.h"
#include "server/engine/run/step_count.h"
#include "server/service/state/overrides.h"
#include "server/service/state/text_proto.h"
#include "tests/ops/contract.h"
#include "tests/ops/contract_files.h"
#include "tests/support/catch.h"
#include "tests/support/compressed.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"
#include "tests/support/tree.h"

namespace penstock::test {
namespace {

std::shared_ptr<const Plan> MustPlan(const std::string& stages) {
  auto plan = PlanText(Stages(stages));
  INFO(stages << " " << plan.status().ToString());
  REQUIRE(plan.ok());
  return *plan;
}

v1::Fingerprint MustFingerprint(const std::string& stages) {
  const auto fingerprint = FingerprintOf(*MustPlan(stages));
  REQUIRE(fingerprint.ok());
  return *fingerprint;
}

std::string Bytes(const v1::Fingerprint& fingerprint) { return fingerprint.SerializeAsString(); }

absl::Status Change(const std::string& from, const std::string& to) {
  const auto plan = MustPlan(from);
  return CheckPlanChange(*plan, *plan, *MustPlan(to));
}

// Without those that are there for a test to add.
v1::PipelineSpec ParseSpec(const std::string& stages) {
  v1::PipelineSpec spec;
  REQUIRE(ParseTextProto(Stages(stages), "spec", &spec).ok());
  return spec;
}

TEST_CASE("A new op keeps the contract of all ops") {
  ScratchFolder folder;
  for (int i = 0; i < 9; ++i) WriteFile(folder / absl::StrCat("file-", i), "x");
  const std::string names = absl::StrCat("file_names { pattern: '", folder.path(), "/file-*' }");
  for (const std::string& text : {
           std::string("range { stop: 200 } | thin { one_of: 3 salt: 4 } | join { rows: 7 }"),
           std::string("range { stop: 60 } | shuffle { buffer_size: 9 seed: 1 } | thin { one_of: 2 "
                       "salt: 4 } | repeat {} | thin { one_of: 2 salt: 5 } | join { rows: 7 }"),
           std::string(
               "range { stop: 200 } | keep_if { let: 'm = value % 7' predicate: 'm < 3' } | "
               "thin { one_of: 2 salt: 4 } | join { rows: 3 } | repeat { count: 2 }"),
           std::string("range { stop: 90 } | window { size: 7 (| thin { one_of: 2 salt: 9 } | join "
                       "{ rows: 2 } |) } | keep_if { predicate: 'value[0] > 4' }"),
           absl::StrCat(names, " | repeat { count: 5 } | join { rows: 4 }"),
           absl::StrCat("zip { (| ", names,
                        " |) (| range { stop: 50 } | thin { one_of: 4 salt: 2 }",
                        " |) } | join { rows: 2 }"),
       }) {
    INFO(text);
    Contract contract(Stages(text));
    CHECK(contract.reference().status == absl::OkStatus());
    CHECK(!contract.reference().batches.empty());
    contract.CheckWorkers();
    contract.CheckDelays(10);
    contract.CheckCursors(1);
    contract.CheckStop();
  }
}

TEST_CASE("A new format of records is read as others are") {
  ScratchFolder folder;
  for (int i = 0; i < 3; ++i) {
    std::string bytes;
    for (int record = 0; record < 40000; record += i + 1)
      bytes += absl::StrCat(i, " ", record) + std::string(1, '\0');
    WriteFile(folder / absl::StrCat("pieces-", i), bytes);
    WriteFile(folder / absl::StrCat("packed-", i), Gzip(bytes));
  }
  const std::string plain =
      absl::StrCat("zero_ended { files: '", folder.path(), "/pieces-*' } | join { rows: 3000 }");
  const std::string packed = absl::StrCat("zero_ended { files: '", folder.path(),
                                          "/packed-*' compression: 'GZIP' } | join { rows: 3000 }");
  const std::string nested =
      absl::StrCat("list_files { files: '", folder.path(),
                   "/pieces-*' shuffle: false } | interleave { (| zero_ended {} |) cycle_length: 2 "
                   "block_length: 70 } | join { rows: 3000 }");
  for (const std::string& text : {plain, packed, nested}) {
    INFO(text);
    Contract contract(Stages(text));
    REQUIRE(contract.reference().status == absl::OkStatus());
    CHECK(contract.reference().batches.size() == (40000 + 20000 + 13334 + 2999) / 3000);
    contract.CheckWorkers();
    contract.CheckDelays(10);
    contract.CheckCursors(1);
  }
  CHECK(RunText(Stages(plain)).batches[1].Strings(0) ==
        RunText(Stages(packed)).batches[1].Strings(0));
  // Errors have the place, and bytes of something else are noticed.
  WriteFile(folder / "cut", std::string("a\0b", 3));
  const auto fails = [&](const char* name) {
    return std::string(RunText(Stages(absl::StrCat("zero_ended { files: '", folder / name, "' }")))
                           .status.message());
  };
  CHECK(fails("cut") == absl::StrCat("stage zero_ended: the file does not end in a zero byte (",
                                     folder / "cut", ", record 1, offset 2)"));
  CHECK(absl::StrContains(fails("packed-0"), "is declared to be plain but looks like gzip"));
}

TEST_CASE(
    "A new op's files, seeds, batch size and folder are in the fingerprint what others' are") {
  ScratchFolder a, b;
  for (const ScratchFolder* folder : {&a, &b}) WriteFile(*folder / "one", "the same");
  const auto spec = [](const ScratchFolder& folder, const std::string& thin, int rows) {
    return absl::StrCat("file_names { pattern: '", folder.path(), "/*' } | repeat {} | thin { ",
                        thin, " } | join { rows: ", rows, " }");
  };
  const v1::Fingerprint base = MustFingerprint(spec(a, "one_of: 2 salt: 1", 4));
  // Another folder of the same files, and what has no effect.
  CHECK(Bytes(MustFingerprint(spec(b, "one_of: 2 salt: 1", 4))) == Bytes(base));
  CHECK(Bytes(MustFingerprint(spec(a, "one_of: 2 salt: 1 notes: 'x' notes_max: 3", 4))) ==
        Bytes(base));
  const auto differs = [&](const std::string& thin, int rows) {
    const v1::Fingerprint other = MustFingerprint(spec(a, thin, rows));
    std::string what;
    if (other.order() != base.order()) what += "order ";
    if (other.seeds() != base.seeds()) what += "seeds ";
    if (other.batch_size() != base.batch_size()) what += "batch_size ";
    if (other.work() != base.work()) what += "work ";
    return what;
  };
  CHECK(differs("one_of: 2 salt: 2", 4) == "seeds ");
  CHECK(differs("one_of: 3 salt: 1", 4) == "order ");
  CHECK(differs("one_of: 2 salt: 1", 5) == "batch_size ");
}

TEST_CASE("Where the values of a new op's constants lie is no matter of its fingerprint") {
  ScratchFolder a, b;
  for (const ScratchFolder* folder : {&a, &b}) WriteFile(*folder / "words", "3\n5\n");
  const auto spec = [](const ScratchFolder& folder) {
    return absl::StrCat("range { stop: 9 } | keep_if { constant { name: 'w' text_line: '",
                        folder.path(), "/words' } predicate: 'w[0] == \"3\"' } | join { rows: 4 }");
  };
  CHECK(Bytes(MustFingerprint(spec(a))) == Bytes(MustFingerprint(spec(b))));
}

TEST_CASE("A new op's options that may change do while a pipeline runs, and others do not") {
  const std::string front = "range { stop: 900 } | name: 't' thin { ";
  const std::string behind = " } | name: 'j' join { rows: 4 }";
  const std::string from = front + "one_of: 2 salt: 1" + behind;
  CHECK(Change(from, front + "one_of: 3 salt: 1" + behind) == absl::OkStatus());
  CHECK(Change(from, front + "one_of: 2 salt: 1 } | name: 'j' join { rows: 3 }") ==
        absl::OkStatus());
  const absl::Status seed = Change(from, front + "one_of: 2 salt: 2" + behind);
  CHECK(
      seed.message() ==
      "stage t: thin decides the order and cannot be changed while the pipeline runs, but for the "
      "batch_size of batch and padded_batch and the one_of of thin and the rows of join and the "
      "weight of sample_from_datasets");
  // Elements wait in a shuffle, and batches that are elements have been made.
  const std::string shuffled = " } | shuffle { buffer_size: 5 seed: 1 } | join { rows: 4 }";
  CHECK(absl::StrContains(
      Change(front + "one_of: 2 salt: 1" + shuffled, front + "one_of: 3 salt: 1" + shuffled)
          .message(),
      "thin cannot be changed while the pipeline runs: shuffle"));
  const std::string twice = " } | join { rows: 4 } | name: 'j' join { rows: 2 }";
  CHECK(absl::StrContains(
      Change(front + "one_of: 2 salt: 1" + twice, front + "one_of: 3 salt: 1" + twice).message(),
      "an op that takes whole batches"));
  // keep_if, which says nothing of itself, is taken to keep elements.
  const std::string filtered = " } | keep_if { predicate: 'value > 3' } | join { rows: 4 }";
  CHECK(absl::StrContains(
      Change(front + "one_of: 2 salt: 1" + filtered, front + "one_of: 3 salt: 1" + filtered)
          .message(),
      "keep_if (stage keep_if) behind it keeps elements"));
}

TEST_CASE("A change without a new op's seed keeps the seed") {
  const auto plan = MustPlan("range { stop: 9 } | thin { one_of: 2 } | join { rows: 2 }");
  const v1::Stage drawn = plan->spec().stage(1);
  REQUIRE(drawn.thin().has_salt());
  v1::Stage changed = drawn;
  changed.mutable_thin()->clear_salt();
  changed.mutable_thin()->set_one_of(3);
  KeepSeeds(drawn, &changed);
  CHECK(changed.thin().salt() == drawn.thin().salt());
  CHECK(PlanText(Stages("range { stop: 9 } | draw_name: 'x' thin { one_of: 2 }")).ok());
  CHECK(
      PlanText(Stages("range { stop: 9 } | draw_name: 'x' join { rows: 2 }")).status().message() ==
      "stage join: draw_name is for ops with a seed, which join has not");
}

TEST_CASE("What is asked of a step needs a new op's seed, and those of its expressions") {
  const auto checked = [](const std::string& stages) {
    return CheckSeedsAreGiven(ParseSpec(stages), MustPlan(stages)->spec());
  };
  CHECK(checked("range { stop: 9 } | thin { one_of: 2 salt: 3 } | join { rows: 2 }").ok());
  CHECK(absl::StrContains(
      checked("range { stop: 9 } | thin { one_of: 2 } | join { rows: 2 }").message(),
      "stage thin: salt: expected a number, found none"));
  CHECK(absl::StrContains(
      checked("range { stop: 9 } | keep_if { predicate: 'random_uniform([2])[0] > 0.5' } | join { "
              "rows: 2 }")
          .message(),
      "stage keep_if: predicate: \"random_uniform([2])[0] > 0.5\": seed: expected a number"));
}

TEST_CASE("The next pass of a new source has the files that it had, one by one") {
  ScratchFolder folder;
  for (const char* name : {"one", "two"}) WriteFile(folder / name, "x");
  const auto plan = MustPlan(absl::StrCat("file_names { pattern: '", folder.path(),
                                          "/*' } | join { rows: 1 } | repeat {}"));
  const auto stages = StagesWithFiles(*plan);
  REQUIRE(stages[0].file_names().pattern_size() == 2);
  CHECK(stages[0].file_names().pattern(0) == folder / "one");
  CHECK(stages[0].file_names().pattern(1) == folder / "two");
}

TEST_CASE("The next pass of an arrow source has its data files, and its file of rows apart") {
  const auto golden = [](const std::string& name) {
    return testing::InTree("tests/golden/arrow/" + name + ".arrow");
  };
  const auto plan = MustPlan(absl::StrCat("arrow { files: '", golden("numbers_zstd"),
                                          "' row_file: '", golden("rows"), "' } | repeat {}"));
  const auto stages = StagesWithFiles(*plan);
  REQUIRE(stages[0].arrow().files_size() == 1);
  CHECK(stages[0].arrow().files(0) == golden("numbers_zstd"));
  CHECK(stages[0].arrow().row_file() == golden("rows"));
}

TEST_CASE("Steps are counted behind a new op that joins elements") {
  for (const char* rest : {"", " | repeat { count: 3 }", " | repeat {} | take { count: 5 }"}) {
    INFO(rest);
    const StepCount batch =
        CountSteps(*MustPlan(absl::StrCat("range { stop: 10 } | batch { batch_size: 4 }", rest)));
    const StepCount join =
        CountSteps(*MustPlan(absl::StrCat("range { stop: 10 } | join { rows: 4 }", rest)));
    CHECK(join.steps == batch.steps);
    CHECK(join.pass_steps == batch.pass_steps);
    CHECK(join.pass_last_rows == batch.pass_last_rows);
  }
  CHECK(CountSteps(*MustPlan("range { stop: 10 } | join { rows: 4 }")).pass_last_rows == 2);
}

TEST_CASE("Random functions in a new op's expressions get seeds") {
  const auto plan = MustPlan(
      "range { stop: 9 } | keep_if { let: 'a = random_uniform([1])' predicate: 'a[0] < "
      "random_uniform([2])[1]' } | join { rows: 2 }");
  const v1::KeepIf& resolved = plan->spec().stage(1).keep_if();
  CHECK(absl::StrContains(resolved.let(0), "seed"));
  CHECK(absl::StrContains(resolved.predicate(), "seed"));
}

TEST_CASE("Overrides reach a new op's files and constants, and its paths are made absolute") {
  v1::SpecSource source;
  *source.mutable_spec() = ParseSpec(
      "file_names { pattern: 'a' } | keep_if { constant { name: 'K' value: 1 } constant { name: "
      "'L' "
      "npy: 'l.npy' } predicate: 'K > 0' } | thin { one_of: 2 notes: 'n' }");
  source.set_base_directory("/data");
  v1::FilesOverride* const files = source.mutable_overrides()->add_files();
  files->set_glob("b*");
  v1::ConstantOverride* const constant = source.mutable_overrides()->add_constants();
  constant->set_name("K");
  constant->set_value("5");
  const auto spec = ResolveSource(source);
  INFO(spec.status().ToString());
  REQUIRE(spec.ok());
  REQUIRE(spec->stage(0).file_names().pattern_size() == 1);
  CHECK(spec->stage(0).file_names().pattern(0) == "/data/b*");
  CHECK(spec->stage(1).keep_if().constant(0).value(0) == 5);
  CHECK(spec->stage(1).keep_if().constant(1).npy() == "/data/l.npy");
  CHECK(spec->stage(2).thin().notes() == "/data/n");
}

}  // namespace
}  // namespace penstock::test
