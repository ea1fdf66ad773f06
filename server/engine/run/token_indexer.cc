#include "server/engine/run/token_indexer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cache_folder.h"
#include "base/memory_account.h"
#include "base/new_thread.h"
#include "base/stop_flag.h"
#include "io/record/token_counts.h"
#include "server/engine/compute/row_evaluator.h"
#include "server/engine/plan/count_index.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/plan/plan_impl.h"

namespace penstock {
namespace {

constexpr uint32_t kBlockRecords = 64;
constexpr auto kTell = std::chrono::milliseconds(200);

// What all threads that count the records of one file share.
struct FileCounting {
  FileCounting(const BuiltPlan& of_plan, const CountedStage& of_stage, FileTable& of_files,
               uint32_t number, const RecordIndex& of_file)
      : plan(of_plan),
        stage(of_stage),
        files(of_files),
        file(number),
        index(of_file),
        counts(of_file.size(), TokenCounts::kLeftOut) {}

  const BuiltPlan& plan;
  const CountedStage& stage;
  FileTable& files;
  const uint32_t file;
  const RecordIndex& index;
  std::vector<uint32_t> counts;  // each thread writes those of its blocks

  std::atomic<uint64_t> next{0};  // record that no thread has taken
  std::atomic<uint64_t> records{0};
  std::atomic<uint64_t> left_out{0};
  std::atomic<uint64_t> tokens{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<bool> stop{false};

  std::mutex mutex;
  std::condition_variable changed;
  uint32_t at_work = 0;                     // threads; under mutex
  uint64_t failed_record = UINT64_MAX;      // the lowest one; the same
  absl::Status failure = absl::OkStatus();  // the same: its
};

// One thread's part of it.
class BlockCounter {
 public:
  explicit BlockCounter(FileCounting& of)
      : of_(of),
        clock_(static_cast<int>(of.plan.stages.names().size())),
        evaluator_(of.files, clock_) {}

  void Run(uint64_t first, uint32_t records) {
    const uint64_t end = first + records;
    while (first < end) {
      // An op stops at its own first bad row, but an earlier row may fail in a later op: look again at the rows before it.
      Failure failure;
      auto left = static_cast<uint32_t>(end - first);
      while (left > 0) {
        Failure found = RunRows(first, left);
        if (found.status.ok()) break;
        left = found.status.row;
        failure = std::move(found);
      }
      first += left;
      if (failure.status.ok()) continue;
      if (!IsLeftOut(failure)) return Fail(first, failure);
      of_.left_out.fetch_add(1, std::memory_order_relaxed);
      of_.records.fetch_add(1, std::memory_order_relaxed);
      ++first;
    }
    of_.bytes.fetch_add(of_.index.end(end - 1) - of_.index.offset(end - records),
                        std::memory_order_relaxed);
  }

 private:
  struct Failure {
    RowStatus status;
    int stage = 0;
    bool loading = false;
  };

  // Where a global shuffle deals in positions, it is one that has been looked up.
  RecordRef RecordAt(uint64_t ordinal) const {
    RecordRef record;
    record.offset = of_.index.offset(ordinal);
    record.length = static_cast<uint32_t>(of_.index.length(ordinal));
    record.file = of_.file;
    record.resolved = 1;
    return record;
  }

  // Counts these, if all of them do well.
  Failure RunRows(uint64_t first, uint32_t rows) {
    evaluator_.Reset();
    try {
      auto* const references = evaluator_.arena().AllocateArray<RecordRef>(rows);
      for (uint32_t i = 0; i < rows; ++i) references[i] = RecordAt(first + i);
      const WorkNode& elements = *of_.stage.elements;
      Columns made(elements.output.size());
      RowStatus status = evaluator_.Evaluate(elements, {references, rows, 1}, absl::MakeSpan(made));
      if (!status.ok())
        return {std::move(status), evaluator_.failed_stage(), evaluator_.failed_loading()};
      const WorkOp& counting = of_.stage.rows->counting();
      Columns counted(counting.output().size());
      status =
          counting.Run(static_cast<int>(rows), made, absl::MakeSpan(counted), evaluator_.arena());
      if (!status.ok()) return {std::move(status), of_.stage.stage, false};
      Take(first, rows, counted[0]);
      return {};
    } catch (const MemoryLimitError& error) {
      return {{MemoryStatus(error), 0}, evaluator_.failed_stage(), false};
    }
  }

  void Take(uint64_t first, uint32_t rows, const Column& column) {
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < rows; ++i) {
      int64_t count = 0;
      std::memcpy(&count, column.row(i), sizeof(count));
      of_.counts[first + i] = static_cast<uint32_t>(count);
      tokens += count;
    }
    of_.tokens.fetch_add(tokens, std::memory_order_relaxed);
    of_.records.fetch_add(rows, std::memory_order_relaxed);
  }

  bool IsLeftOut(const Failure& failure) const {
    return of_.stage.rows->ignored() && !failure.loading && absl::IsDataLoss(failure.status.status);
  }

  void Fail(uint64_t record, const Failure& failure) {
    const RecordRef reference = RecordAt(record);
    const absl::Status staged(failure.status.status.code(),
                              absl::StrCat("stage ", of_.plan.stages.names()[failure.stage], ": ",
                                           failure.status.status.message()));
    const absl::Status addressed =
        WithElementAddress(staged, {&reference, 1}, *of_.stage.elements, of_.files);
    std::lock_guard<std::mutex> lock(of_.mutex);
    // Blocks that were taken before it are gone through to their end: theirs may be lower.
    of_.next.store(of_.index.size(), std::memory_order_relaxed);
    if (record >= of_.failed_record) return;
    of_.failed_record = record;
    of_.failure = addressed;
  }

  FileCounting& of_;
  StageClock clock_;
  RowEvaluator evaluator_;
};

void Work(FileCounting& counting) {
  {
    const StopFlag::Scope stop(&counting.stop);
    BlockCounter blocks(counting);
    const uint64_t size = counting.index.size();
    try {
      while (!counting.stop.load(std::memory_order_relaxed)) {
        const uint64_t first = counting.next.fetch_add(kBlockRecords, std::memory_order_relaxed);
        if (first >= size) break;
        blocks.Run(first, static_cast<uint32_t>(std::min<uint64_t>(kBlockRecords, size - first)));
      }
    } catch (const Stopped&) {
    }
  }
  std::lock_guard<std::mutex> lock(counting.mutex);
  --counting.at_work;
  counting.changed.notify_one();
}

class Indexer {
 public:
  using Tell = std::function<bool(const TokenIndexProgress& progress)>;

  Indexer(const PlanImpl& plan, const BuiltPlan& built, uint32_t workers, const Tell& tell)
      : built_(built),
        files_(plan.files(), built.files.manifest()),
        store_(plan.files(), CacheFolder("index")),
        workers_(workers),
        tell_(tell) {}

  absl::Status Index(const CountedStage& stage) {
    for (uint32_t i = 0; i < stage.files.count; ++i) {
      if (absl::Status status = IndexFile(stage, stage.files.first + i); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Unwanted() {
    return absl::CancelledError("the index of tokens is not wanted any more");
  }

  absl::Status IndexFile(const CountedStage& stage, uint32_t file) {
    const absl::StatusOr<std::shared_ptr<RandomAccessFile>> data = files_.Open(file);
    if (!data.ok()) return data.status();
    TokenIndexProgress progress;
    progress.stage = built_.stages.names()[stage.stage];
    progress.path = built_.files.manifest()[file].path;
    progress.bytes = (*data)->size();
    if (!tell_(progress)) return Unwanted();
    const absl::StatusOr<FoundTokenCounts> found = LookAtTokenCounts(**data, stage.key, store_);
    if (found.ok() && (found->sums.left_out == 0 || stage.rows->ignored())) {
      progress.was_there = true;
      return End(found->sums, found->place, &progress);
    }
    const FileTable::IndexOrError index = files_.Index(file, stage.on_damage);
    if (!index.ok()) return index.status();
    FileCounting counting(built_, stage, files_, file, **index);
    if (absl::Status status = Count(counting, &progress); !status.ok()) return status;
    const TokenCounts counts(counting.counts);
    const absl::StatusOr<std::string> place = KeepTokenCounts(**data, stage.key, counts, store_);
    if (!place.ok()) return place.status();
    return End(counts.sums(), *place, &progress);
  }

  absl::Status End(const TokenCounts::Sums& sums, const std::string& place,
                   TokenIndexProgress* progress) {
    progress->documents = sums.records;
    progress->left_out = sums.left_out;
    progress->tokens = sums.tokens;
    progress->bytes_done = progress->bytes;
    progress->index_path = place;
    return tell_(*progress) ? absl::OkStatus() : Unwanted();
  }

  absl::Status Count(FileCounting& counting, TokenIndexProgress* progress) {
    const uint64_t blocks = (counting.index.size() + kBlockRecords - 1) / kBlockRecords;
    const auto threads = static_cast<uint32_t>(std::clamp<uint64_t>(blocks, 1, workers_));
    counting.at_work = threads;
    std::vector<std::thread> working;
    absl::Status none;  // why there are not more of them
    for (uint32_t i = 0; i < threads && none.ok(); ++i) {
      absl::StatusOr<std::thread> thread = NewThread("tokens", [&counting] { Work(counting); });
      if (thread.ok()) working.push_back(*std::move(thread));
      none = thread.status();
    }
    if (working.empty()) return none;
    bool is_wanted = true;
    std::unique_lock<std::mutex> lock(counting.mutex);
    counting.at_work -= threads - static_cast<uint32_t>(working.size());
    while (counting.at_work > 0) {
      counting.changed.wait_for(lock, kTell);
      if (!is_wanted || counting.at_work == 0) continue;
      lock.unlock();
      progress->documents = counting.records.load(std::memory_order_relaxed);
      progress->left_out = counting.left_out.load(std::memory_order_relaxed);
      progress->tokens = counting.tokens.load(std::memory_order_relaxed);
      progress->bytes_done = counting.bytes.load(std::memory_order_relaxed);
      is_wanted = tell_(*progress);
      if (!is_wanted) counting.stop.store(true, std::memory_order_relaxed);
      lock.lock();
    }
    lock.unlock();
    for (std::thread& thread : working) thread.join();
    return is_wanted ? counting.failure : Unwanted();
  }

  const BuiltPlan& built_;
  FileTable files_;
  FolderIndexStore store_;
  const uint32_t workers_;
  const Tell& tell_;
};

}  // namespace

absl::Status IndexTokens(const Plan& plan, uint32_t workers,
                         const std::function<bool(const TokenIndexProgress& progress)>& tell) {
  if (workers > kMaxIndexWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers: expected 0 to ", kMaxIndexWorkers, ", found ", workers));
  }
  if (workers == 0)
    workers = std::clamp<uint32_t>(std::thread::hardware_concurrency(), 1, kMaxIndexWorkers);
  const auto& made = static_cast<const PlanImpl&>(plan);
  // Without the indices that there are, which the plan has taken in the place of these stages' elements.
  absl::StatusOr<BuiltPlan> built = PlanBuilder(plan.spec(), made.files()).Build();
  if (!built.ok()) return built.status();
  const std::vector<CountedStage> stages = FindCounted(*built);
  if (stages.empty()) {
    return absl::FailedPreconditionError(
        "no stage of the pipeline goes by the tokens of its elements: expected a `pack`");
  }
  std::vector<std::string> reasons;
  bool any = false;
  Indexer indexer(made, *built, workers, tell);
  for (const CountedStage& stage : stages) {
    if (!stage.reason.empty()) {
      reasons.push_back(
          absl::StrCat("stage ", built->stages.names()[stage.stage], ": ", stage.reason));
      continue;
    }
    any = true;
    if (absl::Status status = indexer.Index(stage); !status.ok()) return status;
  }
  if (any) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("there can be no index of tokens: ", absl::StrJoin(reasons, "; ")));
}

}  // namespace penstock
