// Fault 35, of what one pipeline or caller may take from the others.
// Calls end with their callers: what nobody wants any more is not computed to its end.
#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "base/local_file.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/state/overrides.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

v1::PipelineSpec SpecOf(const std::string& text) {
  v1::SpecSource source;
  source.mutable_text()->set_text(text);
  auto spec = ResolveSource(source);
  REQUIRE(spec.ok());
  return *std::move(spec);
}

// Of a caller who goes at the third look.
Unwanted GoesSoon(std::shared_ptr<std::atomic<int>> looks = std::make_shared<std::atomic<int>>(0)) {
  return [looks]() -> absl::Status {
    return ++*looks >= 3 ? absl::CancelledError("the caller has gone") : absl::OkStatus();
  };
}

TEST_CASE("a look-up far into a stream ends with its caller") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 60);
  PipelineTable table(LocalFileSystem(), {});
  const v1::PipelineSpec spec =
      SpecOf("name: 'p' stage { tfrecord { files: '" + folder / "a" +
             "' } } stage { parse_example { feature { key: 'n' int64 {} } } } stage { filter { "
             "predicate: 'n % "
             "5 != 0' } } stage { batch { batch_size: 4 } } stage { repeat {} }");
  const auto checked = table.Check(spec);
  REQUIRE(checked.ok());
  constexpr uint64_t kFar = uint64_t{1} << 40;
  const auto found =
      table.LookUp<RowPlace>(spec, GoesSoon(), [plan = checked->plan](const WalkLimits& limits) {
        return FindRow(plan, "a", 1, kFar, 1000, limits);
      });
  CHECK(absl::IsCancelled(found.status()));
  CHECK(found.status().message() == "the caller has gone");
  const auto shown = table.LookUp<ShownRow>(
      spec, GoesSoon(),
      [plan = checked->plan](const WalkLimits& limits) { return ShowRow(plan, kFar, 0, limits); });
  CHECK(absl::IsCancelled(shown.status()));
}

TEST_CASE("what a look-up finds in time is told") {
  PipelineTable table(LocalFileSystem(), {});
  const v1::PipelineSpec spec =
      SpecOf("name: 'p' stage { range { stop: 100 } } stage { batch { batch_size: 4 } }");
  const auto checked = table.Check(spec, [] { return absl::OkStatus(); });
  REQUIRE(checked.ok());
  const auto shown = table.LookUp<ShownRow>(
      spec, [] { return absl::OkStatus(); },
      [plan = checked->plan](const WalkLimits& limits) { return ShowRow(plan, 3, 1, limits); });
  REQUIRE(shown.ok());
  CHECK(shown->features[0].name == "value");
}

TEST_CASE("a spec that asks for more memory than it may have is refused") {
  PipelineTable table(LocalFileSystem(), {});
  v1::MemoryLimits limits;
  limits.set_max_pipeline_work_bytes(32 << 20);
  table.SetMemoryLimits(limits);
  const v1::PipelineSpec spec = SpecOf(
      "name: 'p' max_work_bytes: 100000000 stage { range { stop: 100 } } stage { batch { "
      "batch_size: 4 } "
      "}");
  CHECK(absl::IsInvalidArgument(table.Check(spec).status()));
  CHECK(absl::IsInvalidArgument(table.Create(spec).status()));
  CHECK(table.List().empty());
}

}  // namespace
}  // namespace penstock::test
