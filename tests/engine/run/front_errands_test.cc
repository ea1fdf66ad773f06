// What the order has done by errands holds nobody, though it hangs: the files that a cache looks
// for, and those that are announced.
#include <pthread.h>

#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/disk.h"
#include "server/engine/run/executor.h"
#include "tests/support/armed_files.h"
#include "tests/support/catch.h"
#include "tests/support/counting_sink.h"
#include "tests/support/pipeline.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

// Files of which one opening, the next one once that is asked for, takes until LetGo().
struct OneSlowOpening : ArmedFiles {
  OneSlowOpening() : ArmedFiles([](const std::string&) { return false; }) {
    files.HangOpenings([this](const std::string&) { return armed.exchange(false); });
    files.set_disk(&LocalDisk());
  }
};

bool IsErrandsThread() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  return std::string_view(name).substr(0, 6) == "errand";
}

TEST_CASE("fault 28: while a file is opened to be announced, all steps of a global shuffle come") {
  ArmedFiles slow([](const std::string&) { return false; });
  // A worker that opens it first would leave the errand nothing to do.
  slow.files.HangOpenings([&slow](const std::string&) {
    if (slow.armed && !IsErrandsThread()) slow.WaitUntilHanging();
    return slow.armed && IsErrandsThread();
  });
  slow.files.set_disk(&LocalDisk());
  WriteShard(slow.folder / "a", 0, 100);
  const auto plan = Planned(
      absl::StrCat("tfrecord { files: '", slow.folder / "a",
                   "' } | shuffle { global: true seed: 1 block_size: 10 buffer_size: 20 } | "
                   "parse_example { feature { key: 'n' int64 {} } } | batch { batch_size: 10 }"),
      slow.files);
  {
    // The index is known from then on.
    CountingSink sink(*plan);
    const auto executor = Started(plan, sink);
    CHECK(sink.WaitForEnd());
    executor->Stop();
  }
  slow.armed = true;
  CountingSink sink(*plan);
  const auto executor = Started(plan, sink);
  CHECK(sink.WaitForEnd());
  CHECK(sink.status().ok());
  CHECK(sink.steps() == 10);
  CHECK(slow.WaitUntilHanging());
  // What it uses is there until it is back.
  CHECK_FALSE(executor->TryStop());
  CHECK_FALSE(executor->HasEnded());
  slow.files.LetGo();
  executor->Stop();
  CHECK(executor->HasEnded());
}

TEST_CASE("fault 28: while a cache looks for its files, whoever holds the stream is answered") {
  OneSlowOpening slow;
  WriteShard(slow.folder / "a", 0, 100);
  const auto plan = Planned(
      absl::StrCat("tfrecord { files: '", slow.folder / "a",
                   "' } | parse_example { feature { key: 'n' int64 {} } } | cache { filename: '",
                   slow.folder / "kept", "' } | batch { batch_size: 10 }"),
      slow.files);
  CountingSink sink(*plan);
  slow.armed = true;
  const auto executor = Started(plan, sink);
  CHECK(slow.WaitUntilHanging());
  auto held = std::async(std::launch::async, [&executor] { return executor->Hold(); });
  const bool is_held = held.wait_for(kHangs) == std::future_status::ready;
  CHECK(is_held);
  CHECK(slow.files.hanging() == 1);
  slow.files.LetGo();
  CHECK(held.get() == 0);
  executor->Release();
  CHECK(sink.WaitForEnd());
  CHECK(sink.status().ok());
  CHECK(sink.steps() == 10);
  executor->Stop();
  CHECK(!std::filesystem::is_empty(slow.folder / "kept"));
}

}  // namespace
}  // namespace penstock::test
