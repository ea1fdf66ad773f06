// What the order has done by errands holds nobody, though it hangs: the files that a cache looks for.
#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/disk.h"
#include "server/engine/run/executor.h"
#include "tests/support/catch.h"
#include "tests/support/counting_sink.h"
#include "tests/support/hanging_files.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

// Files of which one opening, the next one once that is asked for, takes until LetGo().
struct OneSlowOpening {
  OneSlowOpening() : files([](const std::string&, uint64_t) { return false; }) {
    files.HangOpenings([this](const std::string&) { return armed.exchange(false); });
    files.set_disk(&LocalDisk());
  }

  bool WaitUntilHanging() {
    const auto until = std::chrono::steady_clock::now() + kHangs;
    while (files.hanging() == 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    return files.hanging() == 1;
  }

  ScratchFolder folder;
  std::atomic<bool> armed{false};
  HangingFiles files;
};

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
