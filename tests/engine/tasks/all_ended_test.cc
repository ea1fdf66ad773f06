#include "server/engine/tasks/all_ended.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "base/stop_flag.h"
#include "tests/support/catch.h"

namespace penstock::test {
namespace {

// Work that ends when it is cancelled.
void BeginEndless(Completion end, std::atomic<int>* cancelled) {
  const auto held = std::make_shared<Completion>(std::move(end));
  held->OnCancel([held, cancelled] {
    ++*cancelled;
    held->End(absl::CancelledError("not wanted any more"));
  });
}

TEST_CASE("who waits is told the first error when all have ended") {
  AllEnded all;
  CHECK(all.Wait().ok());
  Completion first = all.One(), second = all.One(), third = all.One();
  third.End();
  std::thread others([&] {
    second.End(absl::DataLossError("second"));
    first.End(absl::DataLossError("first"));
  });
  CHECK(all.Wait().message() == "second");
  others.join();
  // Once.
  all.One().End();
  CHECK(all.Wait().ok());
}

TEST_CASE("fault 35: a stop cancels what has not ended, and what begins later") {
  std::atomic<int> cancelled{0};
  std::atomic<bool> stop{false};
  const StopFlag::Scope scope(&stop);
  AllEnded all;
  BeginEndless(all.One(), &cancelled);
  all.One().End();
  BeginEndless(all.One(), &cancelled);
  std::thread stops([&] { stop = true; });
  CHECK(absl::IsCancelled(all.Wait()));
  stops.join();
  CHECK(cancelled == 2);
  BeginEndless(all.One(), &cancelled);
  CHECK(cancelled == 3);
  CHECK(absl::IsCancelled(all.Wait()));
}

TEST_CASE("what nobody has waited for is cancelled at the end") {
  std::atomic<int> cancelled{0};
  {
    AllEnded all;
    BeginEndless(all.One(), &cancelled);
  }
  CHECK(cancelled == 1);
}

}  // namespace
}  // namespace penstock::test
