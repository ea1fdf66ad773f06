// Rows that others compute: the same bytes, errors and lists as where the workers do, no worker
// that waits, and ends that come in time, though what was asked for never comes (fault 28).
#include "server/engine/compute/rows_away.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/order/away_work_op.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/run/executor.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

constexpr std::chrono::seconds kHangs{60};

// A thread that computes what it is given, in an order that it draws.
class Elsewhere {
 public:
  explicit Elsewhere(uint64_t seed = 1) : dice_(seed), thread_([this] { Run(); }) {}
  ~Elsewhere() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
      at_least_ = 0;
    }
    changed_.notify_all();
    thread_.join();
  }

  void Do(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(mutex_);
    given_.push_back(std::move(work));
    most_ = std::max(most_, given_.size());
    changed_.notify_all();
  }
  // It begins when so many wait, but for the first `before` of them all. Not again once there were.
  void WaitFor(size_t calls, size_t before = 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    at_least_ = calls;
    before_ = before;
    changed_.notify_all();
  }
  bool WaitUntilGiven(size_t calls) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kHangs, [&] { return given_.size() >= calls; });
  }
  // Calls that have waited here at the same time.
  size_t most() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return most_;
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] {
        return over_ || (!given_.empty() && (before_ > 0 || given_.size() >= at_least_));
      });
      if (given_.empty()) return;
      if (before_ > 0) {
        --before_;
      } else {
        at_least_ = 0;
      }
      const size_t next = dice_() % given_.size();
      std::function<void()> work = std::move(given_[next]);
      given_.erase(given_.begin() + next);
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 dice_;  // under mutex_, as those below
  std::deque<std::function<void()>> given_;
  size_t at_least_ = 0;
  size_t before_ = 0;
  size_t most_ = 0;
  bool over_ = false;
  std::thread thread_;
};

// How a call ends, where not by its work.
enum class Fate { kMade, kFails, kDropped, kOnlyWhenCancelled };

// Does elsewhere what another op does.
class OpElsewhere final : public AwayWorkOp {
 public:
  OpElsewhere(std::unique_ptr<WorkOp> op, Elsewhere& elsewhere, std::function<Fate()> fate)
      : op_(std::move(op)), elsewhere_(elsewhere), fate_(std::move(fate)) {}

  const Signature& output() const override { return op_->output(); }
  bool draws() const override { return op_->draws(); }
  const char* doing() const override { return "computing rows elsewhere"; }
  std::string place() const override { return "test"; }

  void Begin(AwayRows* rows, Completion end) const override {
    // A std::function is to be copied.
    const auto held = std::make_shared<Completion>(std::move(end));
    if (fate_() == Fate::kOnlyWhenCancelled) {
      const auto ended = std::make_shared<std::promise<void>>();
      held->OnCancel([ended] { ended->set_value(); });
      elsewhere_.Do([held, ended] {
        ended->get_future().wait();
        held->End(absl::CancelledError("nobody wants it"));
      });
      return;
    }
    elsewhere_.Do([this, rows, held] {
      Completion own = std::move(*held);
      switch (fate_()) {
        case Fate::kFails:
          own.End(absl::UnavailableError("the other process has ended"));
          return;
        case Fate::kDropped:
          return;
        default:
          rows->failure = op_->Run(rows->rows, rows->in, rows->out, *rows->arena);
          own.End();
      }
    });
  }

 private:
  const std::unique_ptr<WorkOp> op_;
  Elsewhere& elsewhere_;
  const std::function<Fate()> fate_;
};

// Has `elsewhere` do the work of the ops of stages of that kind, also in front of sections. Returns
// how many there are.
int SendAway(WorkNode& node, const std::vector<int>& stages, Elsewhere& elsewhere,
             const std::function<Fate()>& fate) {
  int sent = 0;
  for (std::unique_ptr<WorkNode>& input : node.inputs)
    sent += SendAway(*input, stages, elsewhere, fate);
  const bool wanted = node.kind == WorkNode::Kind::kWork &&
                      std::find(stages.begin(), stages.end(), node.stages.back()) != stages.end();
  if (!wanted) return sent;
  node.op = std::make_unique<OpElsewhere>(std::move(node.op), elsewhere, fate);
  return sent + 1;
}

std::shared_ptr<const Plan> Planned(const std::string& text) {
  absl::StatusOr<std::shared_ptr<const Plan>> plan = PlanText(text);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return *std::move(plan);
}

std::shared_ptr<const Plan> PlannedAway(
    const std::string& text, const std::vector<int>& stages, Elsewhere& elsewhere,
    std::function<Fate()> fate = [] { return Fate::kMade; }) {
  std::shared_ptr<const Plan> plan = Planned(text);
  // No op of the registry is like that: the plan is nobody else's yet.
  auto& work = const_cast<WorkNode&>(static_cast<const PlanImpl&>(*plan).work());
  REQUIRE(SendAway(work, stages, elsewhere, fate) > 0);
  return plan;
}

struct Case {
  const char* what;
  const char* stages;            // behind the source
  std::vector<int> stages_away;  // by their numbers, of which the source is 0
};

const Case kCases[] = {
    {"the only work",
     "| parse_example { feature { key: 'n' int64 {} } } | batch { batch_size: 50 }",
     {1}},
    {"in front of other work",
     "| parse_example { feature { key: 'n' int64 {} } } | map { out: 'n = n * 3 + 1' } | batch { "
     "batch_size: 50 drop_remainder: true }",
     {1}},
    {"behind other work, with draws and strings",
     "| parse_example { feature { key: 'n' int64 {} } feature { key: 'd' bytes { length: 8 } } } | "
     "map { out: 'n = n' out: 'r = random_uniform([2], seed=4)' out: 's = d' } | batch { "
     "batch_size: 50 }",
     {2}},
    {"twice, one behind the other",
     "| parse_example { feature { key: 'n' int64 {} } } | ignore_errors {} | map { out: 'n = n * "
     "7' "
     "} | batch { batch_size: 50 }",
     {1, 3}},
    {"in front of a filter",
     "| parse_example { feature { key: 'n' int64 {} } } | filter { predicate: 'n % 3 != 0' } | map "
     "{ "
     "out: 'n = n + 1' } | batch { batch_size: 50 }",
     {1}},
    {"in front of a filter and behind it, shuffled",
     "| shuffle { buffer_size: 64 seed: 3 } | parse_example { feature { key: 'n' int64 {} } } | "
     "filter { predicate: 'n % 3 != 0' } | map { out: 'n = n + 1' } | batch { batch_size: 50 }",
     {2, 4}},
};

TEST_CASE("rows that another thread computes are those that the workers would, in their order") {
  ScratchFolder folder;
  for (int shard = 0; shard < 3; ++shard)
    WriteShard(folder / absl::StrCat(shard), 1000 * shard, 300 + 17 * shard);
  for (const Case& example : kCases) {
    const std::string text = Stages(
        absl::StrCat("tfrecord { files: '", folder / "*", "' cycle_length: 2 } ", example.stages));
    INFO(example.what);
    const RunResult expected = RunText(text);
    REQUIRE(expected.finished);
    REQUIRE(expected.status.ok());
    for (const int workers : {1, 2, 8}) {
      INFO(workers << " workers");
      Elsewhere elsewhere(workers);
      const auto plan = PlannedAway(text, example.stages_away, elsewhere);
      const RunResult result = RunPlan(plan, {.workers = workers, .slots = 4});
      CHECK(result.finished);
      CHECK(result.status.ok());
      CHECK(result.batches == expected.batches);
    }
  }
}

// Counts the calls whose first column has a place, or has none, and writes there.
class PlaceLooker final : public AwayWorkOp {
 public:
  PlaceLooker(std::unique_ptr<WorkOp> op, std::atomic<int>* placed, std::atomic<int>* unplaced)
      : op_(std::move(op)), placed_(placed), unplaced_(unplaced) {}

  const Signature& output() const override { return op_->output(); }
  const char* doing() const override { return "looking at places"; }
  std::string place() const override { return "test"; }

  void Begin(AwayRows* rows, Completion end) const override {
    ++*(rows->out[0].data != nullptr ? placed_ : unplaced_);
    rows->failure = op_->Run(rows->rows, rows->in, rows->out, *rows->arena);
    end.End();
  }

 private:
  const std::unique_ptr<WorkOp> op_;
  std::atomic<int>* const placed_;
  std::atomic<int>* const unplaced_;
};

TEST_CASE("what others compute last has its place in the batch, and nothing else has one") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 300);
  struct {
    const char* rest;
    bool is_placed;
  } const cases[] = {
      {"| batch { batch_size: 40 }", true},
      {"| ignore_errors {} | batch { batch_size: 40 }", false},
      {"| map { out: 'n = n + 1' } | batch { batch_size: 40 }", false},
      {"| filter { predicate: 'n >= 0' } | batch { batch_size: 40 }", false},
  };
  for (const auto& [rest, is_placed] : cases) {
    INFO(rest);
    const std::string text =
        Stages(absl::StrCat("tfrecord { files: '", folder / "a",
                            "' } | parse_example { feature { key: 'n' int64 {} } } ", rest));
    const RunResult expected = RunText(text);
    std::atomic<int> placed{0}, unplaced{0};
    std::shared_ptr<const Plan> plan = Planned(text);
    std::vector<WorkNode*> nodes = {
        &const_cast<WorkNode&>(static_cast<const PlanImpl&>(*plan).work())};
    while (!nodes.empty()) {
      WorkNode& node = *nodes.back();
      nodes.pop_back();
      for (std::unique_ptr<WorkNode>& input : node.inputs) nodes.push_back(input.get());
      if (node.kind == WorkNode::Kind::kWork && node.stages.back() == 1)
        node.op = std::make_unique<PlaceLooker>(std::move(node.op), &placed, &unplaced);
    }
    const RunResult result = RunPlan(plan);
    CHECK(result.status.ok());
    CHECK(result.batches == expected.batches);
    CHECK((placed > 0) == is_placed);
    CHECK((unplaced > 0) == !is_placed);
  }
}

TEST_CASE("one worker begins further blocks while others compute the rows of the first ones") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 3000);
  for (const char* const rest : {"| batch { batch_size: 64 }",
                                 "| filter { predicate: 'n >= 0' } | batch { batch_size: 64 }"}) {
    INFO(rest);
    Elsewhere elsewhere;
    // A section asks for one block a worker until it knows how large they are.
    elsewhere.WaitFor(3, /*before=*/1);
    const auto plan = PlannedAway(
        Stages(absl::StrCat("tfrecord { files: '", folder / "a",
                            "' } | parse_example { feature { key: 'n' int64 {} } } ", rest)),
        {1}, elsewhere);
    const RunResult result = RunPlan(plan, {.workers = 1, .slots = 4});
    CHECK(result.status.ok());
    CHECK(Int64s(result).size() == 3000);
    CHECK(elsewhere.most() >= 3);
  }
}

TEST_CASE("the time that blocks are away is told of their stage") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 200);
  Elsewhere elsewhere;
  const auto plan = PlannedAway(
      Stages(absl::StrCat("tfrecord { files: '", folder / "a",
                          "' } | parse_example { feature { key: 'n' int64 {} } } | batch { "
                          "batch_size: 64 }")),
      {1}, elsewhere);
  const RunResult result = RunPlan(plan);
  CHECK(result.stats.stages[0].away_ns == 0);
  CHECK(result.stats.stages[1].away_ns > 0);
  CHECK(result.stats.stages[1].elements == 200);
  CHECK(result.stats.tasks_away == 0);
}

// Records of which every seventh has bytes of another length than the rest.
void WriteUneven(const std::string& path, int64_t count) {
  std::vector<std::string> records;
  for (int64_t n = 0; n < count; ++n) records.push_back(MakeRecord(n, n % 7 == 5 ? 9 : 8));
  WriteRecords(path, records);
}

TEST_CASE("a row that fails elsewhere fails as it would in a worker, or is left out as there") {
  ScratchFolder folder;
  WriteUneven(folder / "a", 500);
  for (const char* const rest :
       {"| batch { batch_size: 40 }",
        "| filter { predicate: 'n % 2 == 0' } | batch { batch_size: 40 }",
        "| ignore_errors {} | batch { batch_size: 40 }",
        // Of the rows in front of one that fails elsewhere, one fails in a later op.
        "| map { out: \"n = int64(unpack_bits(d)[0]) + 7 // (n - 3)\" } | batch { batch_size: 40 "
        "}"}) {
    const std::string text = Stages(absl::StrCat("tfrecord { files: '", folder / "a",
                                                 "' } | parse_example { feature { key: 'n' int64 "
                                                 "{} } feature { key: 'd' bytes { length: 8 } "
                                                 "} } ",
                                                 rest));
    INFO(rest);
    const RunResult expected = RunText(text);
    Elsewhere elsewhere;
    const RunResult result = RunPlan(PlannedAway(text, {1}, elsewhere));
    CHECK(result.status == expected.status);
    CHECK(result.batches == expected.batches);
    REQUIRE(result.skipped.size() == expected.skipped.size());
    for (size_t i = 0; i < result.skipped.size(); ++i) {
      CHECK(result.skipped[i].damage.offset == expected.skipped[i].damage.offset);
      CHECK(result.skipped[i].message == expected.skipped[i].message);
    }
  }
}

TEST_CASE("rows of which nothing can be said fail with that, at the address of the first one") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 500);
  for (const char* const rest : {"| batch { batch_size: 40 }",
                                 "| filter { predicate: 'n >= 0' } | batch { batch_size: 40 }"}) {
    INFO(rest);
    const std::string text =
        Stages(absl::StrCat("tfrecord { files: '", folder / "a",
                            "' } | parse_example { feature { key: 'n' int64 {} } } ", rest));
    for (const Fate fate : {Fate::kFails, Fate::kDropped}) {
      Elsewhere elsewhere;
      const RunResult result = RunPlan(PlannedAway(text, {1}, elsewhere, [fate] { return fate; }));
      CHECK(result.finished);
      CHECK(result.batches.empty());
      const std::string message(result.status.message());
      INFO(message);
      CHECK(absl::StrContains(message, fate == Fate::kFails ? "the other process has ended"
                                                            : "given up without a word"));
      CHECK(absl::StrContains(message, "record 0"));
      CHECK(result.status.code() ==
            (fate == Fate::kFails ? absl::StatusCode::kUnavailable : absl::StatusCode::kInternal));
    }
  }
}

// Publishes nothing.
class NoSink final : public BatchSink {
 public:
  explicit NoSink(const Plan& plan) : memory_(plan.slot_bytes() + 64) {}
  bool TryClaim(ClaimedSlot* claimed) override {
    if (std::exchange(claimed_, true)) return false;
    claimed->tensors = {memory_.data()};
    return true;
  }
  void Publish(const ClaimedSlot&, const StepInfo&) override {}
  void Finish(const absl::Status&) override {}
  void WaitForSlot(absl::Duration) override { std::this_thread::yield(); }
  void Interrupt() override {}

 private:
  std::vector<uint8_t> memory_;
  bool claimed_ = false;
};

TEST_CASE("a stop has what is away cancelled, and waits for its end") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 500);
  for (const char* const rest : {"| batch { batch_size: 40 }",
                                 "| filter { predicate: 'n >= 0' } | batch { batch_size: 40 }"}) {
    INFO(rest);
    Elsewhere elsewhere;
    const auto plan = PlannedAway(
        Stages(absl::StrCat("tfrecord { files: '", folder / "a",
                            "' } | parse_example { feature { key: 'n' int64 {} } } ", rest)),
        {1}, elsewhere, [] { return Fate::kOnlyWhenCancelled; });
    NoSink sink(*plan);
    ExecutorOptions options;
    options.workers = 2;
    auto executor = Executor::Create(plan, sink, options);
    REQUIRE(executor.ok());
    REQUIRE((*executor)->Start().ok());
    while ((*executor)->Snapshot().tasks_away == 0) std::this_thread::yield();
    CHECK(!(*executor)->HasEnded());
    CHECK((*executor)->TryStop());
    CHECK((*executor)->HasEnded());
    CHECK((*executor)->Snapshot().tasks_away == 0);
  }
}

TEST_CASE("what is away and does not end is left behind by a stop, until it does") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 500);
  auto elsewhere = std::make_unique<Elsewhere>();
  elsewhere->WaitFor(SIZE_MAX);
  const auto plan = PlannedAway(
      Stages(absl::StrCat("tfrecord { files: '", folder / "a",
                          "' } | parse_example { feature { key: 'n' int64 {} } } | batch { "
                          "batch_size: 40 }")),
      {1}, *elsewhere);
  NoSink sink(*plan);
  ExecutorOptions options;
  options.workers = 2;
  auto executor = Executor::Create(plan, sink, options);
  REQUIRE(executor.ok());
  REQUIRE((*executor)->Start().ok());
  REQUIRE(elsewhere->WaitUntilGiven(1));
  CHECK(!(*executor)->TryStop());
  CHECK(!(*executor)->HasEnded());
  const ExecutorStats stats = (*executor)->Snapshot();
  CHECK(stats.tasks_away > 0);
  REQUIRE(stats.oldest_work.has_value());
  CHECK(stats.oldest_work->doing == "computing rows elsewhere");
  CHECK(!stats.oldest_write.has_value());
  elsewhere->WaitFor(0);
  (*executor)->Stop();
  CHECK((*executor)->HasEnded());
}

TEST_CASE("where a block cannot be left, the worker waits for the rows") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 100);
  WriteShard(folder / "b", 1000, 100);
  // Of a branch, and of a batch that is an element.
  for (const std::string& text :
       {absl::StrCat(
            "concatenate { (| tfrecord { files: '", folder / "a",
            "' } | parse_example { feature { key: 'n' int64 {} } } |) (| tfrecord { files: '",
            folder / "b",
            "' } | parse_example { feature { key: 'n' int64 {} } } |) } | batch { "
            "batch_size: 30 }"),
        absl::StrCat(
            "tfrecord { files: '", folder / "a",
            "' } | parse_example { feature { key: 'n' int64 {} } } | batch { batch_size: 5 "
            "} | batch { batch_size: 3 }")}) {
    INFO(text);
    const RunResult expected = RunText(Stages(text));
    REQUIRE(expected.status.ok());
    Elsewhere elsewhere;
    const RunResult result =
        RunPlan(PlannedAway(Stages(text), {1, 2, 3, 4}, elsewhere), {.workers = 2});
    CHECK(result.status.ok());
    CHECK(result.batches == expected.batches);
  }
}

}  // namespace
}  // namespace penstock::test
