// Tasks that others end, or never do (fault 28), and errands: who is told what, and when.
#include "server/engine/tasks/away_tasks.h"

#include <atomic>
#include <future>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "server/engine/tasks/errands.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

struct ToldTask final : AwayTask {
  void Ended(absl::Status status) override { told.push_back(std::move(status)); }
  std::vector<absl::Status> told;
};

TEST_CASE("a task comes back once, with what its end was told, and wakes who sleeps") {
  Event work;
  AwayTasks away(work, 2);
  ToldTask task;
  const Event::Ticket ticket = work.Prepare();
  Completion end = away.Leave(&task, {CallKind::kRead, "fetching", "a", 7, 1});
  CHECK(away.size() == 1);
  CHECK(!work.IsOver(ticket));
  const std::vector<CallUnderWay> calls = away.CallsUnderWay(0);
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].doing == "fetching");
  CHECK(calls[0].path == "a");
  CHECK(calls[0].offset == 7);
  std::thread([&end] { end.End(absl::DataLossError("x")); }).join();
  CHECK(work.IsOver(ticket));
  work.Cancel();
  CHECK(away.size() == 0);
  CHECK(away.CallsUnderWay(0).empty());
  REQUIRE(task.told.size() == 1);
  CHECK(task.told[0] == absl::DataLossError("x"));
  CHECK(away.NanosOf(0) == 0);
  CHECK(away.NanosOf(1) > 0);
}

TEST_CASE("a task whose end is dropped comes back with an error") {
  Event work;
  AwayTasks away(work, 1);
  ToldTask task;
  { const Completion dropped = away.Leave(&task, {}); }
  REQUIRE(task.told.size() == 1);
  CHECK(absl::IsInternal(task.told[0]));
  Completion kept;
  {
    Completion moved = away.Leave(&task, {});
    kept = std::move(moved);
  }
  CHECK(task.told.size() == 1);
  kept.End();
  CHECK(task.told.back().ok());
}

TEST_CASE("who does what nobody wants any more is told once, and whoever begins behind that too") {
  Event work;
  AwayTasks away(work, 1);
  ToldTask first, second, ended;
  int told = 0;
  Completion end_first = away.Leave(&first, {});
  end_first.OnCancel([&told] { ++told; });
  Completion end_ended = away.Leave(&ended, {});
  end_ended.OnCancel([&told] { told += 100; });
  end_ended.End();
  away.Cancel();
  away.Cancel();
  CHECK(told == 1);
  Completion end_second = away.Leave(&second, {});
  end_second.OnCancel([&] { told += 10; });
  CHECK(told == 11);
  end_first.End(absl::CancelledError(""));
  end_second.End(absl::CancelledError(""));
  CHECK(away.WaitForAll(0));
}

TEST_CASE("an end waits for tasks that are away, but for those that hang") {
  Event work;
  AwayTasks away(work, 1);
  ToldTask hung, quick;
  Completion end_hung = away.Leave(&hung, {CallKind::kRead, "fetching", "a", 0, 0});
  Completion end_quick = away.Leave(&quick, {CallKind::kWork, "computing", "f", 0, 0});
  std::future<bool> stopped =
      std::async(std::launch::async, [&away] { return away.WaitForAll(/*hung_read_ns=*/0); });
  end_quick.End();
  // The read is one that hangs from the first moment on.
  CHECK(!stopped.get());
  CHECK(away.size() == 1);
  std::future<void> ended = std::async(std::launch::async, [&away] { away.WaitForAll(); });
  end_hung.End();
  ended.get();
  CHECK(away.size() == 0);
}

// Ends when the test says so.
struct TestErrand final : Errand {
  explicit TestErrand(Errands& owner) : Errand(CallKind::kWork, 0), errands(owner) {}
  void Begin(Completion end) override {
    errands.Do([this, end = std::move(end)]() mutable {
      thread = std::this_thread::get_id();
      begun.set_value();
      go_on.get_future().wait();
      end.End();
    });
  }
  Errands& errands;
  std::promise<void> begun, go_on;
  std::thread::id thread;
};

TEST_CASE("errands that wait are done by threads of their own, so many at a time") {
  Event work;
  AwayTasks away(work, 1);
  Errands errands(away);
  std::vector<std::unique_ptr<TestErrand>> all;
  for (size_t i = 0; i < Errands::kThreads + 1; ++i) {
    all.push_back(std::make_unique<TestErrand>(errands));
    errands.Push(all.back().get());
  }
  while (Errand* const errand = errands.Pop()) errands.Begin(errand);
  CHECK(errands.empty());
  std::set<std::thread::id> threads;
  for (size_t i = 0; i < Errands::kThreads; ++i) {
    all[i]->begun.get_future().wait();
    threads.insert(all[i]->thread);
  }
  CHECK(threads.size() == Errands::kThreads);
  CHECK(threads.count(std::this_thread::get_id()) == 0);
  CHECK(away.size() == Errands::kThreads + 1);
  for (const std::unique_ptr<TestErrand>& errand : all) {
    CHECK(!errand->done());
    errand->go_on.set_value();
  }
  away.WaitForAll();
  for (const std::unique_ptr<TestErrand>& errand : all) CHECK(errand->done());
}

TEST_CASE("errands are done in place where that is asked for") {
  Event work;
  AwayTasks away(work, 1);
  Errands errands(away);
  errands.DoInPlace();
  std::thread::id thread;
  errands.Do([&thread] { thread = std::this_thread::get_id(); });
  CHECK(thread == std::this_thread::get_id());
}

}  // namespace
}  // namespace penstock
