// The workers of a function, seen from the daemon: whose time it is, and what is told of them.
#include "server/python/pool.h"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
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

TEST_CASE("fault 64: a worker that hangs in front of its next sheet is replaced") {
  const ScratchFolder folder;
  const auto pool = NewPool(ShellFunction(folder, "mkdir first 2>/dev/null && kill -STOP $$; true"),
                            {.timeout_ms = 30, .between_rows_ms = 2'000});
  const absl::Status status = Use(*pool, 1);
  INFO(status.ToString());
  CHECK(status.ok());
  CHECK(pool->Workers().deaths == 1);
  CHECK(pool->Workers().started == 2);
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

TEST_CASE("Where nobody names a number, rows that lie ready at a busy worker ask for another one") {
  const ScratchFolder folder;
  // Two rows are two sheets, both of which fit on the worker's trays.
  const auto pool = NewPool(ShellFunction(folder, "sleep 0.001"), {.workers = 2, .chooses = true});
  const uint64_t begin = MonotonicNanos();
  while (pool->Workers().workers < 2 && MonotonicNanos() - begin < 20'000'000'000)
    REQUIRE(Use(*pool, 2).ok());
  CHECK(pool->Workers().workers == 2);
  pool->Close();
}

// --- loading -------------------------------------------------------------------------------------

// What only the first one does not do.
std::string ButTheFirst(const char* what) {
  return absl::StrCat("mkdir first 2>/dev/null || ", what);
}

TEST_CASE("As many workers as rows wait for are started at once") {
  const ScratchFolder folder;
  // None is ready before all are there.
  const auto pool = NewPool(
      ShellFunction(folder, ":",
                    "mkdir there$$; while [ $(ls -d there* | wc -l) -lt 3 ]; do sleep 0.01; done"),
      {.workers = 8});
  // Twelve rows of which nothing is known are three sheets.
  CHECK(Use(*pool, 12).ok());
  CHECK(pool->Workers().started == 3);
  CHECK(pool->Workers().deaths == 0);
  pool->Close();
}

TEST_CASE("fault 64: workers that crash together while they load the function count once") {
  const ScratchFolder folder;
  const auto pool = NewPool(
      ShellFunction(folder, ":", "for i in 1 2 3 4; do mkdir d$i 2>/dev/null && kill -9 $$; done"),
      {.workers = 4});
  const absl::Status status = Use(*pool, 16);
  INFO(status.ToString());
  CHECK(status.ok());
  CHECK(pool->Workers().deaths == 4);
  pool->Close();
}

TEST_CASE("fault 64: behind a crash workers load the function one after the other") {
  const ScratchFolder folder;
  // The first two crash; each of the others notes how many are at it with it.
  const auto pool = NewPool(
      ShellFunction(folder, ":",
                    "for i in 1 2; do mkdir d$i 2>/dev/null && kill -9 $$; done; mkdir loading$$; "
                    "sleep 0.3; ls -d loading* | wc -l >>together; rmdir loading$$"),
      {.workers = 2});
  const absl::Status status = Use(*pool, 16);
  INFO(status.ToString());
  CHECK(status.ok());
  int together = 0;
  CHECK(std::ifstream(folder / "together") >> together);
  CHECK(together == 1);
  pool->Close();
}

TEST_CASE("fault 64: a function that crashes while it is loaded is given up after three workers") {
  const ScratchFolder folder;
  const auto pool = NewPool(ShellFunction(folder, ":", "kill -SEGV $$"), {.workers = 2});
  const absl::Status status = Use(*pool);
  INFO(status.ToString());
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(status.message().find("a worker of the Python function shell ended its process (SIGSEGV) "
                              "while it loaded the function, as 3 have done one after the other") !=
        std::string::npos);
  CHECK(pool->Workers().started == 3);
  CHECK(pool->Workers().deaths == 3);
  pool->Close();
}

TEST_CASE(
    "fault 64: a function that hangs while it is loaded is given up, where rows have a limit") {
  const ScratchFolder folder;
  const auto pool = NewPool(ShellFunction(folder, ":", "kill -STOP $$"),
                            {.timeout_ms = 30, .load_timeout_ms = 100});
  const absl::Status status = Use(*pool);
  INFO(status.ToString());
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(status.message().find("took longer than 100 ms while it loaded the function") !=
        std::string::npos);
  CHECK(pool->Workers().started == 3);
  pool->Close();
}

TEST_CASE("fault 64: a function that takes long to be loaded is waited for") {
  const ScratchFolder folder;
  // Far longer than a row may take.
  const auto pool =
      NewPool(ShellFunction(folder, ":", "sleep 0.3; while [ ! -e gate ]; do sleep 0.01; done"),
              {.timeout_ms = 30});
  std::future<absl::Status> used = std::async(std::launch::async, [&] { return Use(*pool); });
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  CHECK(pool->Workers().oldest_row_ns == 0);
  CHECK(pool->Workers().loading_ns >= 300'000'000);
  std::ofstream(folder / "gate").put(' ');
  CHECK(used.get().ok());
  CHECK(pool->Workers().loading_ns == 0);
  CHECK(pool->Workers().deaths == 0);
  CHECK(pool->Workers().started == 1);
  pool->Close();
}

TEST_CASE("fault 64: rows do not wait for a worker that hangs while it loads the function") {
  const ScratchFolder folder;
  const auto pool =
      NewPool(ShellFunction(folder, "sleep 0.02", ButTheFirst("kill -STOP $$")), {.workers = 2});
  CHECK(Use(*pool, 40).ok());
  CHECK(pool->Workers().started == 2);
  CHECK(pool->Workers().deaths == 0);
  pool->Close();
}

TEST_CASE("fault 64: who has loaded the function does the work of those that cannot") {
  const ScratchFolder folder;
  const auto pool =
      NewPool(ShellFunction(folder, "sleep 0.05", ButTheFirst("kill -9 $$")), {.workers = 2});
  CHECK(Use(*pool, 80).ok());
  const AwayWorkers workers = pool->Workers();
  CHECK(workers.rows == 80);
  // No more than three are tried for a while, besides one that died before the first was ready.
  CHECK(workers.started >= 2);
  CHECK(workers.started <= 5);
  pool->Close();
}

TEST_CASE("Behind max_rows_per_worker rows a worker is replaced, before it makes many more") {
  const ScratchFolder folder;
  const auto pool = NewPool(ShellFunction(folder, ":"), {.max_rows_per_worker = 3});
  for (int i = 0; i < 12; ++i) REQUIRE(Use(*pool, 1).ok());
  const AwayWorkers workers = pool->Workers();
  CHECK(workers.rows == 12);
  CHECK(workers.started == 4);
  CHECK(workers.deaths == 0);
  pool->Close();
  const auto without = NewPool(ShellFunction(folder));
  for (int i = 0; i < 12; ++i) REQUIRE(Use(*without, 1).ok());
  CHECK(without->Workers().started == 1);
  without->Close();
}

}  // namespace
}  // namespace penstock::python
