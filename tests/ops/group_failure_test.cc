// A window whose size is an error: it is one of this pass only, and the elements of the window are
// let go of once.
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

TEST_CASE("group_by: a window without a size harms no other pass") {
  // The filter's blocks ask for the windows behind those that are taken, down to the one that
  // fails.
  const RunResult result = RunText(
      Stages("range { stop: 1000 } | group_by_window { key: 'value // 4' window_size_of_key: "
             "'where(key < 3, 4, 0)' } | filter { predicate: 'value >= 0' } | take { count: 8 } | "
             "batch { batch_size: 8 } | repeat {}"),
      {.max_steps = 60});
  INFO(result.status.ToString());
  CHECK(result.batches.size() == 60);
  for (const Batch& batch : result.batches)
    CHECK(batch.As<int64_t>(0) == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

}  // namespace
}  // namespace penstock::test
