#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/engine/plan/plan_impl.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

constexpr int kFiles = 20;

// The base names that a list of the folder's files gives, in order.
std::vector<std::string> Names(const ScratchFolder& folder, const std::string& options,
                               const std::string& rest = "", const std::string& name = "") {
  for (int i = 0; i < kFiles; ++i) WriteFile(folder / absl::StrCat("f", 10 + i), "x");
  std::string spec = Stages(absl::StrCat("list_files { files: '", folder.path(), "/*' ", options,
                                         " }", rest, " | batch { batch_size: 7 }"));
  if (!name.empty()) spec.insert(spec.find('{') + 1, " name: '" + name + "'");
  std::vector<std::string> names;
  for (const Batch& batch : RunText(spec).batches) {
    for (const std::string& path : batch.Strings(0))
      names.push_back(std::filesystem::path(path).filename());
  }
  return names;
}

TEST_CASE("list_files: shuffled lists hold every file once a pass, in an order of their own") {
  ScratchFolder folder;
  const std::vector<std::string> sorted = Names(folder, "shuffle: false");
  REQUIRE(sorted.size() == kFiles);
  CHECK(std::is_sorted(sorted.begin(), sorted.end()));
  const std::vector<std::string> two = Names(folder, "seed: 3", " | repeat { count: 2 }");
  REQUIRE(two.size() == 2 * kFiles);
  const std::vector<std::string> first(two.begin(), two.begin() + kFiles);
  const std::vector<std::string> second(two.begin() + kFiles, two.end());
  CHECK(first != sorted);
  CHECK(first != second);
  CHECK(std::is_permutation(first.begin(), first.end(), sorted.begin()));
  CHECK(std::is_permutation(second.begin(), second.end(), sorted.begin()));
  // By seed and by stage name, and the same each time.
  CHECK(Names(folder, "seed: 3") == first);
  CHECK(Names(folder, "seed: 3 shuffle: true") == first);
  CHECK(Names(folder, "seed: 4") != first);
  CHECK(Names(folder, "seed: 3", "", "other") != first);
  const std::vector<std::string> same =
      Names(folder, "seed: 3 reshuffle_each_iteration: false", " | repeat { count: 2 }");
  CHECK(std::equal(same.begin(), same.begin() + kFiles, same.begin() + kFiles));
}

TEST_CASE("A path with a zero byte is refused, and not taken for what stands before it") {
  ScratchFolder folder;
  WriteFile(folder / "a", "x");
  for (const char* op : {"list_files", "text_line", "files"}) {
    const auto plan = PlanText(Stages(absl::StrCat(op, " { files: '", folder / "a", "\\000b' }")));
    CHECK(plan.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(plan.status().message(),
                            absl::StrCat("found a zero byte at ", (folder / "a").size(), " of ")));
  }
}

TEST_CASE("list_files: without a seed one is drawn and stands in the plan's spec") {
  ScratchFolder folder;
  WriteFile(folder / "a", "x");
  const std::string text = absl::StrCat("stage { list_files { files: '", folder.path(), "/a' } }");
  const auto plan = PlanText(text);
  REQUIRE(plan.ok());
  CHECK((*plan)->spec().stage(0).list_files().has_seed());
  CHECK((*plan)->spec().stage(0).list_files().seed() !=
        (*PlanText(text))->spec().stage(0).list_files().seed());
}

TEST_CASE("list_files: a reference's file is the manifest's entry of that path") {
  ScratchFolder folder;
  for (const char* name : {"a", "b", "c"}) WriteFile(folder / name, name);
  const auto plan =
      PlanText(Stages(absl::StrCat("range { stop: 4 } | zip { (| list_files { files: '",
                                   folder.path(), "/*' shuffle: false } |) }")));
  REQUIRE(plan.ok());
  const Manifest& manifest = static_cast<const PlanImpl&>(**plan).manifest();
  REQUIRE(manifest.size() == 4);
  CHECK(manifest[0].path == "");
  for (int i = 1; i < 4; ++i) {
    CHECK(manifest[i].path == folder / std::string(1, "abc"[i - 1]));
    CHECK(manifest[i].size_bytes == 1);
    CHECK(manifest[i].version.object != 0);
  }
}

TEST_CASE("list_files: globs that match nothing, folders and options without a sense are refused") {
  ScratchFolder folder;
  std::filesystem::create_directory(folder / "sub");
  WriteFile(folder / "a", "x");
  const struct {
    std::string options;
    const char* message;
  } cases[] = {
      {"", "expected at least one path or glob, found none"},
      {"files: 'FOLDER/a' files: 'FOLDER/none*'", "no file matches the glob"},
      {"files: 'FOLDER/none'", "cannot open"},
      {"files: 'FOLDER/*'", "not a regular file"},
      {"files: 'FOLDER/a' shuffle: false seed: 1", "mean something for shuffled files only"},
  };
  for (const auto& c : cases) {
    const auto plan = PlanText(absl::StrReplaceAll(
        absl::StrCat("stage { list_files { ", c.options, " } }"), {{"FOLDER", folder.path()}}));
    INFO(plan.status().ToString());
    CHECK_FALSE(plan.ok());
    CHECK(absl::StrContains(plan.status().message(), c.message));
  }
}

TEST_CASE("list_files: the cursor belongs to these files") {
  ScratchFolder folder;
  for (const char* name : {"a", "b", "c"}) WriteFile(folder / name, name);
  const std::string text =
      Stages(absl::StrCat("list_files { files: '", folder.path(), "/*' seed: 1 } | repeat {} "));
  const auto plan = PlanText(text);
  REQUIRE(plan.ok());
  CHECK(absl::StartsWith((*plan)->DescribeCursor(), "seek"));
  const std::string cursor = RunPlan(*plan, {.max_steps = 2}).batches[1].info.cursor;
  REQUIRE(TryRunPlan(*PlanText(text), {.max_steps = 1, .cursor = cursor}).ok());
  WriteFile(folder / "c", "C");
  const absl::Status ends =
      TryRunPlan(*PlanText(text), {.max_steps = 1, .cursor = cursor}).status();
  CHECK(absl::StrContains(ends.message(), "begin or end with other bytes"));
  WriteFile(folder / "d", "");
  const absl::Status names =
      TryRunPlan(*PlanText(text), {.max_steps = 1, .cursor = cursor}).status();
  CHECK(absl::StrContains(names.message(), "other names, or there are more"));
}

}  // namespace
}  // namespace penstock::test
