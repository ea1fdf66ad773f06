// The workers of a function, seen from the daemon: whose time it is, and what is told of them.
#include "server/python/pool.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "base/tick_clock.h"
#include "tests/python/shell_worker.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock::python {
namespace {

using penstock::test::ScratchFolder;
using test::NewPool;
using test::ShellFunction;
using test::Use;

TEST_CASE("fault 64: what a worker does between rows is no row's time") {
  const ScratchFolder folder;
  // It says nothing of a row, and takes ten times as long as one may take.
  const auto pool = NewPool(ShellFunction(folder, "sleep 0.3"), {.timeout_ms = 30});
  const absl::Status status = Use(*pool, 1);
  INFO(status.ToString());
  CHECK(status.ok());
  CHECK(pool->Workers().deaths == 0);
  pool->Close();
}

TEST_CASE("Deaths are counted, and what was done until then") {
  const ScratchFolder folder;
  const auto pool = NewPool(ShellFunction(folder, "[ -e died ] || { touch died; kill -9 $$; }"));
  const uint64_t begin = MonotonicNanos();
  const absl::Status status = Use(*pool);
  INFO(status.ToString());
  CHECK(status.ok());
  const AwayWorkers workers = pool->Workers();
  CHECK(workers.started == 2);
  CHECK(workers.deaths == 1);
  CHECK(workers.workers == 1);
  CHECK(workers.most_workers == 1);
  CHECK(workers.rows == 3);
  CHECK(workers.busy_ns > 0);
  CHECK(workers.memory_bytes > 0);
  const std::vector<AwaySpan> spans = pool->SpansSince(begin);
  REQUIRE_FALSE(spans.empty());
  uint32_t rows = 0;
  for (const AwaySpan& span : spans) {
    rows += span.rows;
    CHECK(span.begin_ns >= begin);
    CHECK(span.end_ns >= span.begin_ns);
    CHECK(span.process > 0);
  }
  CHECK(rows == 3);
  CHECK(pool->SpansSince(MonotonicNanos()).empty());
  pool->Close();
}

TEST_CASE("Where nobody names a number, one worker does what one can do") {
  const ScratchFolder folder;
  const auto pool = NewPool(ShellFunction(folder), {.workers = 8, .chooses = true});
  for (int i = 0; i < 20; ++i) REQUIRE(Use(*pool, 1).ok());
  const AwayWorkers workers = pool->Workers();
  CHECK(workers.is_chosen);
  CHECK(workers.most_workers == 8);
  CHECK(workers.workers == 1);
  CHECK(workers.started == 1);
  pool->Close();
}

}  // namespace
}  // namespace penstock::python
