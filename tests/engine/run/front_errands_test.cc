// What the order has done by errands holds nobody, though it hangs: the files that a cache looks for.
#include <filesystem>
#include <future>
#include <memory>
#include <string>

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
