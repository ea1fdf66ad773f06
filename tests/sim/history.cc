#include "tests/sim/history.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "server/engine/run/stepped_executor.h"
#include "tests/sim/drawn_pipeline.h"
#include "tests/sim/simulated_files.h"
#include "tests/sim/simulated_sink.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

constexpr uint64_t kMaxSteps = 40;  // of one pipeline
// Some pipelines go through hundreds of passes for a step: so many actions are spent on a
// reference, if it has a step by then.
constexpr uint64_t kReferenceActions = 3000;
// A filter that lets nothing through, behind an endless repeat, looks for ever: such a pipeline is
// left alone.
constexpr uint64_t kFruitlessActions = 100000;
constexpr uint64_t kMaxActions = 3000000;  // of one life; more is called endless

class History {
 public:
  explicit History(uint64_t seed) : dice_(seed), pipeline_(dice_, files_, folder_.path()) {}

  HistoryReport Run() {
    report_.pipeline = pipeline_.text();
    std::string failure = RunLives();
    if (!failure.empty()) report_.failure = absl::StrCat("life ", report_.lives, ": ", failure);
    return report_;
  }

 private:
  // Where a life begins.
  struct Start {
    uint64_t step = 0;
    std::string cursor;
  };

  std::string MakePlan();
  std::string RunLives();
  std::string MakeReference();
  std::string Live(const Start& start, uint64_t* next_step);
  // Steps workers and consumers until the life is over.
  std::string Go(SteppedExecutor& executor, SimulatedSink& sink, uint64_t stop_behind);
  // All workers sleep, as it seems: whether they are right.
  std::string Stir(SteppedExecutor& executor, SimulatedSink& sink);
  std::string End(SteppedExecutor& executor, const SimulatedSink& sink, uint64_t first_step);
  absl::StatusOr<std::unique_ptr<SteppedExecutor>> MakeExecutor(const Start& start, int workers,
                                                                BatchSink& sink) const;

  const ScratchFolder folder_;
  Dice dice_;
  SimulatedFiles files_;
  const DrawnPipeline pipeline_;
  std::shared_ptr<const Plan> plan_;
  v1::Fingerprint fingerprint_;
  RunResult reference_;
  bool is_fruitless_ = false;
  uint64_t end_step_ = kMaxSteps;      // nothing is looked at from there on
  std::vector<SkippedPlace> skipped_;  // of the reference
  HistoryReport report_;

  // Of the present life.
  int workers_ = 0;
  std::vector<uint64_t> pace_;  // a worker goes on once in so many times
  std::vector<Stepped> last_;   // what each worker's last step was
  DiskFault fault_ = DiskFault::kNone;
};

std::string History::MakePlan() {
  v1::PipelineSpec spec;
  if (!google::protobuf::TextFormat::ParseFromString(Stages(pipeline_.text()), &spec))
    return "not the text of a spec";
  absl::StatusOr<std::shared_ptr<const Plan>> plan = penstock::MakePlan(spec, files_);
  if (!plan.ok()) return absl::StrCat("the spec is refused: ", plan.status().ToString());
  plan_ = *std::move(plan);
  absl::StatusOr<v1::Fingerprint> fingerprint = FingerprintOf(*plan_);
  if (!fingerprint.ok()) return fingerprint.status().ToString();
  fingerprint_ = *std::move(fingerprint);
  return "";
}

absl::StatusOr<std::unique_ptr<SteppedExecutor>> History::MakeExecutor(const Start& start,
                                                                       int workers,
                                                                       BatchSink& sink) const {
  ExecutorOptions options;
  options.fingerprint = fingerprint_;
  options.workers = workers;
  if (!start.cursor.empty()) {
    absl::StatusOr<ResumePoint> point = ReadCursor(start.cursor, fingerprint_);
    if (!point.ok()) return point.status();
    options.start = *std::move(point);
    if (options.start.step != start.step) return absl::InternalError("the cursor's step is wrong");
  }
  return SteppedExecutor::Create(plan_, sink, options);
}

std::string History::MakeReference() {
  SimulatedSink sink(*plan_, 1, 1, 0, kMaxSteps, nullptr);
  absl::StatusOr<std::unique_ptr<SteppedExecutor>> executor = MakeExecutor({}, 1, sink);
  if (!executor.ok()) return executor.status().ToString();
  (*executor)->BeginSteps();
  for (uint64_t action = 0; !sink.finished() && sink.next_step() < end_step_; ++action) {
    if (action == kMaxActions) return "the reference does not end";
    if (action == kFruitlessActions && sink.next_step() == 0) {
      is_fruitless_ = absl::StrContains(pipeline_.text(), "filter") &&
                      absl::StrContains(pipeline_.text(), "repeat {}");
      if (is_fruitless_) return "";
    }
    if (action > kReferenceActions && sink.next_step() > 0) end_step_ = sink.next_step();
    if ((*executor)->StepWorker(0) == Stepped::kSleeps && !sink.Drain() && !sink.has_free_slot())
      return "the reference hangs";
    sink.Drain();
  }
  reference_.batches = sink.TakeBatches();
  reference_.finished = sink.finished() && sink.next_step() < end_step_;
  if (reference_.finished) reference_.status = sink.status();
  skipped_ = (*executor)->Skipped();
  report_.ends = reference_.finished;
  report_.fails = !reference_.status.ok();
  return sink.complaint();
}

std::string History::RunLives() {
  if (std::string failure = MakePlan(); !failure.empty()) return failure;
  if (std::string failure = MakeReference(); !failure.empty()) return failure;
  if (is_fruitless_) return "";
  Start start;
  for (uint64_t lives = dice_.Between(1, 4); lives > 0; --lives) {
    ++report_.lives;
    // Another process makes its own plan.
    if (dice_.OneIn(2)) {
      if (std::string failure = MakePlan(); !failure.empty()) return failure;
    }
    // What the last one has kept is there, or has been cleared away.
    if (dice_.OneIn(4)) {
      std::error_code ignored;
      for (const auto& kept : std::filesystem::directory_iterator(folder_.path()))
        std::filesystem::remove(kept.path(), ignored);
    }
    uint64_t next_step = start.step;
    if (std::string failure = Live(start, &next_step); !failure.empty()) return failure;
    // Mostly on from the last step that was published; sometimes from an earlier one, of this life
    // or another.
    if (next_step == 0) continue;
    start.step = dice_.OneIn(3) ? dice_.Between(1, next_step) : next_step;
    start.cursor = reference_.batches[start.step - 1].info.cursor;
  }
  return "";
}

std::string History::Live(const Start& start, uint64_t* next_step) {
  workers_ = static_cast<int>(dice_.Between(1, 6));
  pace_.clear();
  for (int i = 0; i < workers_; ++i) pace_.push_back(dice_.OneIn(3) ? dice_.Between(2, 60) : 1);
  last_.assign(workers_, Stepped::kWorked);
  const uint64_t kind = dice_.Below(10);
  fault_ = kind < 3 ? DiskFault::kNone : DiskFault::kPassing;
  if (kind >= 7) {
    constexpr DiskFault kBreaking[] = {DiskFault::kUnreadable, DiskFault::kCut,
                                       DiskFault::kReplaced, DiskFault::kFlipped};
    fault_ = kBreaking[dice_.Below(pipeline_.finds_flips() ? 4 : 3)];
  }
  SimulatedSink sink(*plan_, static_cast<int>(dice_.Between(1, 5)),
                     static_cast<int>(dice_.Between(1, 3)), start.step, end_step_, &reference_);
  files_.SetFault(DiskFault::kNone, &dice_);
  absl::StatusOr<std::unique_ptr<SteppedExecutor>> executor = MakeExecutor(start, workers_, sink);
  if (!executor.ok()) return absl::StrCat("a cursor is refused: ", executor.status().ToString());
  files_.SetFault(fault_, &dice_);
  (*executor)->BeginSteps();
  const uint64_t stop_behind = dice_.OneIn(2) ? kMaxActions : dice_.Below(400);
  std::string failure = Go(**executor, sink, stop_behind);
  if (failure.empty()) failure = End(**executor, sink, start.step);
  *next_step = sink.next_step();
  report_.steps += sink.next_step() - start.step;
  return failure;
}

std::string History::Go(SteppedExecutor& executor, SimulatedSink& sink, uint64_t stop_behind) {
  int idle = 0;
  uint64_t actions_behind_end = dice_.Below(60);
  for (uint64_t action = 0; action < stop_behind; ++action) {
    if (action + 1 == kMaxActions) return "it does not end";
    if (!sink.complaint().empty()) return sink.complaint();
    if (sink.next_step() == end_step_) return "";
    if (sink.finished() && actions_behind_end-- == 0) return "";
    if (dice_.OneIn(5)) {
      sink.Act(dice_);
      continue;
    }
    const size_t worker = dice_.Below(workers_);
    if (!dice_.OneIn(pace_[worker])) continue;
    // A wait for a slot is over when there is one, or now and then by its time.
    if (last_[worker] == Stepped::kWaitsForSlot && !sink.has_free_slot() && !dice_.OneIn(200)) {
      ++idle;
    } else {
      last_[worker] = executor.StepWorker(static_cast<int>(worker));
      idle = last_[worker] == Stepped::kSleeps ? idle + 1 : 0;
    }
    if (idle < 8 * workers_) continue;
    idle = 0;
    if (std::string failure = Stir(executor, sink); !failure.empty()) return failure;
  }
  return "";
}

std::string History::Stir(SteppedExecutor& executor, SimulatedSink& sink) {
  if (sink.finished()) return "";
  for (int worker = 0; worker < workers_; ++worker) {
    if (last_[worker] == Stepped::kWaitsForSlot) {
      if (sink.has_free_slot()) return "";
      continue;
    }
    last_[worker] = executor.StepWorker(worker);
    if (last_[worker] != Stepped::kSleeps) return "";
  }
  // They all sleep. Then somebody must be waiting for a slot, which the consumers have.
  const bool waits = std::count(last_.begin(), last_.end(), Stepped::kWaitsForSlot) > 0;
  if (!waits || !sink.Drain() || !sink.has_free_slot()) {
    return absl::StrCat("all workers sleep behind step ", sink.next_step(),
                        waits ? "" : ", and none waits for a slot");
  }
  return "";
}

std::string History::End(SteppedExecutor& executor, const SimulatedSink& sink,
                         uint64_t first_step) {
  executor.Stop();
  // What workers hold is finished; then nothing moves any more.
  for (int round = 0; round < 4; ++round) {
    const bool over = round == 3;
    const uint64_t reads = files_.reads();
    for (int worker = 0; worker < workers_; ++worker) {
      const Stepped stepped = executor.StepWorker(worker);
      if (over && (stepped != Stepped::kSleeps || files_.reads() != reads))
        return "a worker goes on behind the stop";
    }
  }
  if (!sink.complaint().empty()) return sink.complaint();
  const bool broken = files_.broken();
  report_.broken += broken && sink.finished();
  // Whether a stream ends just behind the last step that is looked at, nobody asks.
  if (sink.finished() && sink.next_step() < end_step_) {
    const bool whole = sink.next_step() == reference_.batches.size() && reference_.finished;
    const std::string how =
        absl::StrCat("it ended behind step ", sink.next_step(), " with ", sink.status().ToString());
    if (broken ? sink.status().ok() && !(whole && reference_.status.ok())
               : !whole || sink.status() != reference_.status) {
      return absl::StrCat(how, "; the reference has ", reference_.batches.size(), " steps and ",
                          reference_.finished ? reference_.status.ToString() : "no end");
    }
    // A section reads ahead of need, so that damage behind the stream's end may be listed.
    if (first_step == 0 && !broken && sink.status().ok() && !pipeline_.looks_ahead() &&
        executor.Skipped().size() != skipped_.size())
      return absl::StrCat(executor.Skipped().size(), " damaged places were skipped, not ",
                          skipped_.size());
  }
  files_.SetFault(DiskFault::kNone, nullptr);
  if (const uint64_t cells = executor.GiveBack(); cells != 0)
    return absl::StrCat(cells, " records were not given back");
  return "";
}

}  // namespace

HistoryReport RunHistory(uint64_t seed) { return History(seed).Run(); }

std::string RunHistories(uint64_t seed, uint64_t count, HistoryReport* total) {
  // An index that was kept would be found by the next history, which has other files of that name.
  setenv("PENSTOCK_CACHE_DIR", "/proc/none", 1);
  for (uint64_t i = seed; i < seed + count; ++i) {
    const HistoryReport report = RunHistory(i);
    if (!report.failure.empty()) {
      return absl::StrCat("seed ", i, ": ", report.failure, "\n  ", report.pipeline,
                          "\n  again: ./dev test sim --seed ", i, " --histories 1");
    }
    total->steps += report.steps;
    total->lives += report.lives;
    total->broken += report.broken;
    total->ends = total->ends || report.ends;
    total->fails = total->fails || report.fails;
  }
  return "";
}

}  // namespace penstock::test
