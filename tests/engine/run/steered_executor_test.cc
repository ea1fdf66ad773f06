// What its owner does to an executor that runs: where it begins, holds, limits of steps and passes,
// numbers of workers, reads that hang.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/memory_block.h"
#include "base/tick_clock.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/run/executor.h"
#include "server/engine/run/stepped_executor.h"
#include "tests/support/catch.h"
#include "tests/support/faulty_files.h"
#include "tests/support/frames.h"
#include "tests/support/hanging_files.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

// Turns a hang into a failure.
constexpr std::chrono::seconds kHangs{60};

// Keeps the int64 values of the first tensor, which is all that these pipelines have.
class ValueSink final : public BatchSink {
 public:
  // It has so many slots until it is given more, and none of them is freed.
  explicit ValueSink(const Plan& plan, uint64_t slots = UINT64_MAX)
      : bytes_(*NumBytes(plan.tensors()[0].type)), slots_(slots) {}

  bool TryClaim(ClaimedSlot* claimed) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (memory_.size() == slots_) return false;
    memory_.push_back(AllocateMemoryBlock(bytes_ + 64));
    claimed->tensors = {memory_.back().get()};
    return true;
  }
  void Publish(const ClaimedSlot& slot, const StepInfo& info) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (finished_) std::abort();
    const auto* const values = reinterpret_cast<const int64_t*>(slot.tensors[0]);
    values_.insert(values_.end(), values, values + info.rows);
    infos_.push_back(info);
    changed_.notify_all();
  }
  void Finish(const absl::Status& status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (finished_) std::abort();
    finished_ = true;
    status_ = status;
    changed_.notify_all();
  }
  void WaitForSlot(absl::Duration timeout) override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoMilliseconds(timeout));
  }
  void AddSlots(uint64_t slots) {
    std::lock_guard<std::mutex> lock(mutex_);
    slots_ += slots;
    changed_.notify_all();
  }
  void Interrupt() override { changed_.notify_all(); }

  std::vector<int64_t> values() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return values_;
  }
  std::vector<StepInfo> infos() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return infos_;
  }
  uint64_t steps() const { return infos().size(); }
  bool finished() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return finished_;
  }
  absl::Status status() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }
  // False when that takes too long.
  bool WaitForEnd() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kHangs, [this] { return finished_; });
  }
  bool WaitForSteps(uint64_t steps) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kHangs,
                             [this, steps] { return finished_ || infos_.size() >= steps; });
  }

 private:
  const uint64_t bytes_;
  mutable std::mutex mutex_;
  uint64_t slots_;
  std::condition_variable changed_;
  std::vector<MemoryBlock> memory_;
  std::vector<int64_t> values_;
  std::vector<StepInfo> infos_;
  bool finished_ = false;
  absl::Status status_;
};

std::shared_ptr<const Plan> MadeOf(const std::string& stages,
                                   FileSystem& files = LocalFileSystem()) {
  absl::StatusOr<std::shared_ptr<const Plan>> plan = PlanText(Stages(stages), files);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return *std::move(plan);
}

ExecutorOptions From(uint64_t step, const Position& position) {
  ExecutorOptions options;
  options.start.step = step;
  options.start.position = position;
  return options;
}

std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> values;
  for (int64_t value = begin; value < end; ++value) values.push_back(value);
  return values;
}

// An executor whose worker is the test.
struct Steered {
  explicit Steered(std::shared_ptr<const Plan> made, ExecutorOptions options = {},
                   uint64_t slots = UINT64_MAX)
      : plan(std::move(made)), sink(*plan, slots) {
    options.workers = 1;
    options.at_limit = [this] { ++told; };
    absl::StatusOr<std::unique_ptr<SteppedExecutor>> created =
        SteppedExecutor::Create(plan, sink, options);
    INFO(created.status().ToString());
    REQUIRE(created.ok());
    executor = *std::move(created);
    executor->BeginSteps();
  }

  // Until there is nothing to do.
  void Work() {
    for (int steps = 0; steps < 100'000; ++steps) {
      const Stepped stepped = executor->StepWorker(0);
      if (stepped == Stepped::kSleeps || stepped == Stepped::kWaitsForSlot) return;
    }
    FAIL("it does not come to rest");
  }

  const std::shared_ptr<const Plan> plan;
  ValueSink sink;
  int told = 0;  // of its limit
  std::unique_ptr<SteppedExecutor> executor;
};

TEST_CASE("a held executor begins no step until it was released as often") {
  Steered run(MadeOf("range { stop: 40 } | batch { batch_size: 4 }"));
  CHECK(run.executor->Hold() == 0);
  CHECK(run.executor->Hold() == 0);
  run.Work();
  run.executor->Release();
  run.Work();
  CHECK(run.sink.steps() == 0);
  run.executor->Release();
  run.Work();
  CHECK(run.sink.values() == Range(0, 40));
  CHECK(run.sink.finished());
}

TEST_CASE("a hold names the first step that nothing has been done for, whatever slots there are") {
  Steered run(MadeOf("range { stop: 4000 } | batch { batch_size: 4 }"), {}, 3);
  run.Work();
  CHECK(run.sink.steps() == 3);
  // Two are assembled ahead of a slot.
  CHECK(run.executor->Hold() == 5);
}

TEST_CASE("an executor ends at its limit, from whose position another one goes on") {
  const auto plan =
      MadeOf("range { stop: 40 } | shuffle { buffer_size: 9 seed: 3 } | batch { batch_size: 4 }");
  Steered whole(plan);
  whole.Work();
  for (const uint64_t limit : {0, 1, 7, 10}) {
    CAPTURE(limit);
    Steered first(plan);
    first.executor->Hold();
    first.executor->SetLimit(limit);
    CHECK(first.told == (limit == 0 ? 1 : 0));
    first.executor->Release();
    first.Work();
    // Whoever looks again is told nothing new.
    first.executor->SetLimit(limit);
    CHECK(first.told == 1);
    CHECK_FALSE(first.sink.finished());
    CHECK(first.sink.steps() == limit);
    CHECK(first.executor->Snapshot().steps == limit);
    CHECK(first.executor->Snapshot().rows == 4 * limit);
    Steered second(plan, From(limit, first.executor->AtLimit()));
    second.Work();
    CHECK(second.sink.finished());
    if (limit < 10) CHECK(second.sink.infos().front().step == limit);
    std::vector<int64_t> both = first.sink.values();
    for (const int64_t value : second.sink.values()) both.push_back(value);
    CHECK(both == whole.sink.values());
  }
}

TEST_CASE("a limit that is taken back was none") {
  Steered run(MadeOf("range { stop: 40 } | batch { batch_size: 4 } | repeat { count: 2 }"), {}, 3);
  run.Work();
  const uint64_t next = run.executor->Hold();
  run.executor->SetLimit(next + 1);
  run.executor->SetPassLimit(1);
  CHECK(run.executor->limit() == next + 1);
  run.executor->SetLimit(UINT64_MAX);
  run.executor->SetPassLimit(UINT64_MAX);
  run.executor->Release();
  run.Work();
  CHECK(run.executor->Hold() == next);
  run.executor->Release();
  run.sink.AddSlots(100);
  run.Work();
  CHECK(run.told == 0);
  CHECK(run.sink.finished());
  CHECK(run.sink.steps() == 20);
}

TEST_CASE("an executor ends in front of the pass of its limit, also where the stream does") {
  for (const char* repeat : {"repeat {}", "repeat { count: 3 }", "repeat { count: 2 }"}) {
    CAPTURE(repeat);
    Steered run(MadeOf(absl::StrCat("range { stop: 10 } | batch { batch_size: 4 } | ", repeat)));
    run.executor->Hold();
    run.executor->SetPassLimit(2);
    CHECK(run.executor->limit() == UINT64_MAX);
    run.executor->Release();
    run.Work();
    CHECK(run.told == 1);
    CHECK(run.executor->limit() == 6);
    CHECK(run.executor->Snapshot().epoch == 1);
    CHECK_FALSE(run.sink.finished());
    std::vector<int64_t> expected = Range(0, 10);
    for (const int64_t value : Range(0, 10)) expected.push_back(value);
    CHECK(run.sink.values() == expected);
  }
}

TEST_CASE(
    "files that are gone when the pass of a limit begins are no error: another plan makes it") {
  std::string bytes;
  for (int64_t n = 0; n < 10; ++n) bytes += Frame(MakeRecord(n, 8));
  bool are_gone = false;
  FaultyFiles files({{"a", bytes}},
                    [&are_gone](uint64_t) { return ReadFault{.error = are_gone ? ENODEV : 0}; });
  const auto plan = MadeOf(
      "tfrecord { files: 'a' } | parse_example { feature { key: 'n' int64 {} } } | batch { "
      "batch_size: 5 } | repeat {}",
      files);
  // Without the limit the second pass fails.
  for (const bool has_limit : {true, false}) {
    are_gone = false;
    Steered run(plan, {}, 2);
    run.executor->Hold();
    if (has_limit) run.executor->SetPassLimit(1);
    run.executor->Release();
    // All of the first pass has been read before its first step is there.
    while (run.sink.steps() == 0) run.executor->StepWorker(0);
    are_gone = true;
    run.Work();
    CHECK(run.sink.values() == Range(0, 10));
    CHECK(run.told == (has_limit ? 1 : 0));
    CHECK(run.sink.finished() != has_limit);
    CHECK(run.sink.status().ok() == has_limit);
  }
}

TEST_CASE("a stream begins where it is told to, whatever number its first step has") {
  const auto plan = MadeOf("range { stop: 40 } | batch { batch_size: 4 } | repeat { count: 2 }");
  Steered run(plan);
  run.executor->Hold();
  run.executor->SetLimit(3);
  run.executor->Release();
  run.Work();
  REQUIRE(run.told == 1);
  const Position behind_third = run.executor->AtLimit();
  for (const uint64_t step : {0, 3, 100}) {
    CAPTURE(step);
    ExecutorOptions options = From(step, behind_third);
    Steered sought(plan, options, 1);
    sought.Work();
    REQUIRE(sought.sink.steps() == 1);
    CHECK(sought.sink.infos()[0].step == step);
    CHECK(sought.sink.values() == Range(12, 16));
    options.skip_steps = 2;
    Steered skipped(plan, options, 1);
    skipped.Work();
    REQUIRE(skipped.sink.steps() == 1);
    CHECK(skipped.sink.infos()[0].step == step);
    CHECK(skipped.sink.values() == Range(20, 24));
    // The pass counts, whatever the position.
    options.skip_steps = 0;
    options.start_pass = 1;
    Steered later(plan, options, 1);
    later.Work();
    REQUIRE(later.sink.steps() == 1);
    CHECK(later.sink.infos()[0].step == step);
    CHECK(later.sink.infos()[0].epoch == 1);
    CHECK(later.sink.values() == Range(0, 4));
  }
}

TEST_CASE("steps that are left out may be all that there are") {
  const auto plan = MadeOf("range { stop: 40 } | batch { batch_size: 4 }");
  for (const uint64_t skip : {1, 9, 10, 11}) {
    ExecutorOptions options;
    options.skip_steps = skip;
    Steered run(plan, options);
    run.Work();
    CHECK(run.sink.finished());
    CHECK(run.sink.status().ok());
    CHECK(run.sink.steps() == 10 - std::min<uint64_t>(skip, 10));
    if (skip < 10) CHECK(run.sink.values().front() == static_cast<int64_t>(4 * skip));
  }
}

TEST_CASE("who finds a slot for a step wakes the others for its rows") {
  Steered run(MadeOf("range { stop: 4000 } | batch { batch_size: 1000 }"), {}, 1);
  run.Work();
  REQUIRE(run.sink.steps() == 1);
  while (run.executor->StepWorker(1) != Stepped::kSleeps) continue;
  run.sink.AddSlots(1);
  while (run.executor->StepWorker(0) != Stepped::kHolds) continue;
  CHECK(run.executor->StepWorker(1) == Stepped::kHolds);
  // What they hold is finished.
  run.executor->StepWorker(1);
  run.executor->StepWorker(1);
  run.Work();
  CHECK(run.sink.steps() == 2);
}

// An executor with threads.
struct Threaded {
  Threaded(std::shared_ptr<const Plan> made, uint64_t read_deadline_ns = 0,
           uint64_t slots = UINT64_MAX)
      : sink(*made, slots) {
    ExecutorOptions options;
    options.workers = 2;
    options.worker_nice = 0;
    options.read_deadline_ns = read_deadline_ns;
    options.at_limit = [this] { told = true; };
    absl::StatusOr<std::unique_ptr<Executor>> created =
        Executor::Create(std::move(made), sink, options);
    INFO(created.status().ToString());
    REQUIRE(created.ok());
    executor = *std::move(created);
  }

  ValueSink sink;
  std::atomic<bool> told{false};
  std::unique_ptr<Executor> executor;
};

TEST_CASE("workers become more and fewer while a stream is made, and change nothing of it") {
  constexpr uint64_t kSteps = 600, kAtOnce = 10;
  const std::string stages =
      "range { stop: 6000 } | shuffle { buffer_size: 100 seed: 5 } | batch { batch_size: 10 }";
  Threaded run(MadeOf(stages), /*read_deadline_ns=*/0, /*slots=*/0);
  Executor& executor = *run.executor;
  CHECK(executor.SetWorkers(3).ok());  // before it begins, too
  REQUIRE(executor.Start().ok());
  CHECK(executor.Pulses().size() == 3);
  for (const int wrong : {0, -1, executor.max_workers() + 1}) {
    const absl::Status status = executor.SetWorkers(wrong);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), absl::StrCat("found ", wrong)));
  }
  // Those who go may be those whom the others leave the waiting for slots to.
  for (uint64_t steps = kAtOnce; steps <= kSteps; steps += kAtOnce) {
    const int all[] = {1, executor.max_workers(), 2, 7};
    const int workers = all[steps / kAtOnce % std::size(all)];
    CHECK(executor.SetWorkers(workers).ok());
    CHECK(executor.Snapshot().workers == workers);
    run.sink.AddSlots(kAtOnce);
    REQUIRE(run.sink.WaitForSteps(steps));
  }
  REQUIRE(run.sink.WaitForEnd());
  CHECK(run.sink.status().ok());
  CHECK(run.sink.values() ==
        Int64s(RunText(Stages(stages), {.workers = 1, .max_steps = kSteps + 1})));
  CHECK_FALSE(executor.HasEnded());
  executor.Stop();
  CHECK(executor.HasEnded());
}

// Fault 35, of workers that are too many. Whether all of an executor's workers have computed for a
// while without a pause.
bool AllCompute(const Executor& executor) {
  for (int looks = 0; looks < 20; ++looks) {
    for (const WorkerPulse& pulse : executor.Pulses()) {
      if (pulse.thread == 0 || pulse.idle) return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

TEST_CASE("workers that are too many are not waited for in the middle of a row") {
  // A row takes long. With AddressSanitizer each step of an expression takes stack.
#ifdef __SANITIZE_ADDRESS__
  constexpr int kSines = 100;
#else
  constexpr int kSines = 1000;
#endif
  std::string sines;
  for (int i = 0; i < kSines; ++i) sines += "let: 'x = sin(x)' ";
  Threaded run(
      MadeOf(absl::StrCat("counter {} | map { let: 'x = float64(arange(4194304)) + value' ", sines,
                          "out: 'n = int64(sum(x))' } | batch { batch_size: 1 }")));
  Executor& executor = *run.executor;
  REQUIRE(executor.SetWorkers(2).ok());
  REQUIRE(executor.Start().ok());
  for (int i = 0; i < 600 && !AllCompute(executor); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(AllCompute(executor));
  auto fewer = std::async(std::launch::async, [&executor] {
    absl::Status status = executor.SetWorkers(1);
    // It is one of the workers again, with the row that it is in the middle of, and then it is not.
    status.Update(executor.SetWorkers(2));
    status.Update(executor.SetWorkers(1));
    return status;
  });
  const bool was_waited_for = fewer.wait_for(std::chrono::seconds(10)) != std::future_status::ready;
  CHECK_FALSE(was_waited_for);
  CHECK(executor.Snapshot().workers == 1);
  executor.Stop();
  CHECK(fewer.get().ok() != was_waited_for);
  CHECK(executor.HasEnded());
}

TEST_CASE("the pass of a limit is not waited for: what another plan makes is not read") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 10);
  std::atomic<bool> armed{false};
  std::atomic<int> passes{0};
  HangingFiles files([&](const std::string&, uint64_t offset) {
    return armed && offset == 0 && passes.fetch_add(1) > 0;
  });
  Threaded run(MadeOf(absl::StrCat("tfrecord { files: '", folder / "a",
                                   "' } | parse_example { feature { key: 'n' int64 {} } } | batch "
                                   "{ batch_size: 5 } | repeat {}"),
                      files));
  armed = true;
  run.executor->Hold();
  run.executor->SetPassLimit(1);
  run.executor->Release();
  REQUIRE(run.executor->Start().ok());
  for (int i = 0; i < 6000 && !run.told; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(run.told);
  CHECK(run.sink.values() == Range(0, 10));
  files.LetGo();
  run.executor->Stop();
}

// An order whose third element is not there before it is let go, as where its file hangs.
class HangingOrder final : public ChainedOrderOp {
 public:
  struct Gate {
    std::atomic<bool> hangs{false};
    std::promise<void> lets_go;
  };
  HangingOrder(std::unique_ptr<OrderOp> input, Gate& gate)
      : ChainedOrderOp(std::move(input)), gate_(gate) {}
  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (pulled_ == 2) {
      gate_.hangs = true;
      gate_.lets_go.get_future().wait();
      return Pulled::kEnd;
    }
    const uint64_t before = *pulled;
    const Pulled result = input().Pull(count, out, pulled);
    pulled_ += *pulled - before;
    return result;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override { return input().Skip(count, skipped); }

 private:
  Gate& gate_;
  uint64_t pulled_ = 0;
};

TEST_CASE("who holds a stream that has failed does not wait for its front that hangs in a read") {
  ScratchFolder folder;
  WriteRecords(folder / "a", {MakeRecord(0, 30000)});
  // A long record is read by the worker that needs it, behind its header.
  const uint64_t second = ReadFile(folder / "a").size() + 12;
  WriteRecords(folder / "a", {MakeRecord(0, 30000), MakeRecord(1, 20000), MakeRecord(2, 30000)});
  HangingOrder::Gate gate;
  HangingFiles files([&](const std::string&, uint64_t offset) {
    // The record fails when the front hangs.
    while (offset == second && !gate.hangs) std::this_thread::yield();
    return false;
  });
  const auto plan =
      MadeOf(absl::StrCat("tfrecord { files: '", folder / "a",
                          "' } | parse_example { feature { key: 'd' bytes { length: 30000 } } } | "
                          "map { out: \"d = int64(unpack_bits(d)[0])\" }"),
             files);
  // No op of the registry hangs there; the plan is nobody else's yet.
  auto& order = const_cast<OrderNode&>(static_cast<const PlanImpl&>(*plan).order());
  order.make = [&gate, make = order.make](FrontContext& context, OrderInputs inputs) {
    return std::make_unique<HangingOrder>(make(context, std::move(inputs)), gate);
  };
  Threaded run(plan);
  REQUIRE(run.executor->Start().ok());
  CHECK(run.sink.WaitForEnd());
  CHECK(absl::StrContains(run.sink.status().message(), "expected 30000 bytes, found 20000"));
  CHECK(gate.hangs);
  std::future<uint64_t> held =
      std::async(std::launch::async, [&run] { return run.executor->Hold(); });
  CHECK(held.wait_for(kHangs) == std::future_status::ready);
  gate.lets_go.set_value();
  CHECK(held.get() == run.sink.steps());
  run.executor->Release();
}

TEST_CASE("Whoever holds a stream does not wait for datasets of windows that come to nothing") {
  for (const std::string nothing :
       {"flat_map { (| range { stop: 2 } | repeat {} | interleave { (| range { stop: 3 } | skip { "
        "count: 5 } |) } |) }",
        "window { size: 2 (| repeat {} | enumerate {} | interleave { (| skip { count: 5 } |) } |) "
        "}"}) {
    INFO(nothing);
    const auto plan =
        MadeOf(absl::StrCat("range { stop: 10 } | ", nothing, " | batch { batch_size: 1 }"));
    std::future<uint64_t> held;  // behind what stops it
    Threaded run(plan);
    REQUIRE(run.executor->Start().ok());
    held = std::async(std::launch::async, [&run] { return run.executor->Hold(); });
    CHECK(held.wait_for(kHangs) == std::future_status::ready);
  }
}

TEST_CASE(
    "fault 28: a read that hangs ends the stream behind what is published, but not behind its "
    "limit") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 4000, 100);
  std::atomic<bool> armed{false};
  for (const bool has_limit : {false, true}) {
    CAPTURE(has_limit);
    HangingFiles files([&](const std::string&, uint64_t offset) { return armed && offset > 0; });
    armed = false;
    const auto plan =
        MadeOf(absl::StrCat("tfrecord { files: '", folder / "a",
                            "' } | parse_example { feature { key: 'n' int64 {} } } | batch { "
                            "batch_size: 10 }"),
               files);
    Threaded run(plan, /*read_deadline_ns=*/1'000'000);
    armed = true;
    if (has_limit) run.executor->SetLimit(2);
    REQUIRE(run.executor->Start().ok());
    const uint64_t begin_ns = MonotonicNanos();
    const auto is_late = [begin_ns] {
      return MonotonicNanos() - begin_ns > uint64_t{60'000'000'000};
    };
    while ((files.hanging() == 0 || (has_limit && !run.told)) && !is_late())
      std::this_thread::yield();
    CHECK(files.hanging() == 1);
    // Far beyond the deadline.
    const uint64_t hangs_ns = MonotonicNanos();
    while (has_limit ? MonotonicNanos() - hangs_ns < 50'000'000
                     : !run.sink.finished() && !is_late()) {
      run.executor->EndAtHungRead();
      std::this_thread::yield();
    }
    CHECK(run.sink.finished() != has_limit);
    CHECK(absl::IsDeadlineExceeded(run.sink.status()) != has_limit);
    if (has_limit) CHECK(run.sink.steps() == 2);
    CHECK(run.sink.values() == Range(0, static_cast<int64_t>(10 * run.sink.steps())));
    files.LetGo();
    run.executor->Stop();
  }
}

}  // namespace
}  // namespace penstock::test
