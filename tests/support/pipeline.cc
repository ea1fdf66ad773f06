#include "tests/support/pipeline.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "base/memory_account.h"
#include "google/protobuf/text_format.h"
#include "server/engine/run/executor.h"
#include "tests/support/catch.h"
#include "tests/support/helped_runs.h"

namespace penstock::test {
namespace {

// What a batch's strings may take in all.
constexpr size_t kVariableBytes = 4 << 20;
// Turns a hang into a failure.
constexpr std::chrono::seconds kHangs{120};

// Slots of plain memory; a published step is copied out and its slot is free again.
class VectorSink final : public BatchSink {
 public:
  VectorSink(const Plan& plan, const RunOptions& options)
      : tensors_(plan.tensors()), max_steps_(options.max_steps) {
    for (int slot = 0; slot < options.slots; ++slot) {
      for (const BatchTensor& tensor : tensors_)
        memory_[slot].emplace_back(tensor.fixed() ? *NumBytes(tensor.type) + 64 : 0, '\x5a');
      // Not cleared: most of it is never touched.
      if (AnyVariable()) variable_[slot].reset(new uint8_t[kVariableBytes]);
      free_.push_back(slot);
    }
  }

  bool TryClaim(ClaimedSlot* claimed) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty() || next_claim_ == max_steps_) return false;
    ++next_claim_;
    claimed->slot = free_.front();
    free_.pop_front();
    claimed->tensors.clear();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      std::string& bytes = memory_[claimed->slot][i];
      claimed->tensors.push_back(tensors_[i].fixed() ? reinterpret_cast<uint8_t*>(bytes.data())
                                                     : nullptr);
    }
    claimed->variable = variable_[claimed->slot].get();
    claimed->variable_bytes = AnyVariable() ? kVariableBytes : 0;
    return true;
  }

  void Publish(const ClaimedSlot& slot, const StepInfo& info) override {
    std::lock_guard<std::mutex> lock(mutex_);
    Batch batch{info, {}, {}};
    const uint32_t rows = std::max(info.rows, info.shape_rows);
    size_t num_variable = 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!tensors_[i].fixed()) {
        std::string& bytes = batch.tensors.emplace_back();
        std::vector<std::string>& parts = batch.parts.emplace_back();
        for (const TensorExtent::Part& part : info.extents[num_variable].parts) {
          parts.emplace_back(reinterpret_cast<const char*>(slot.variable) + part.offset,
                             part.bytes);
          bytes += parts.back();
        }
        ++num_variable;
        continue;
      }
      const size_t full_bytes = memory_[slot.slot][i].size() - 64;
      const size_t bytes =
          tensors_[i].batched ? full_bytes / tensors_[i].type.shape[0] * rows : full_bytes;
      batch.tensors.push_back(memory_[slot.slot][i].substr(0, bytes));
      batch.parts.push_back({batch.tensors.back()});
      // What a step leaves behind must not pass for the next one's.
      memory_[slot.slot][i].assign(full_bytes + 64, '\x5a');
    }
    result_.batches.push_back(std::move(batch));
    free_.push_back(slot.slot);
    changed_.notify_all();
  }

  void Finish(const absl::Status& status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    // Nothing of Catch's here: it is made for one thread, and this is a worker's.
    if (result_.finished) std::abort();
    result_.finished = true;
    result_.status = status;
    changed_.notify_all();
  }

  void WaitForSlot(absl::Duration timeout) override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoMilliseconds(timeout), [this] {
      return interrupted_ || (!free_.empty() && next_claim_ < max_steps_);
    });
  }

  void Interrupt() override {
    std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }

  // DeadlineExceeded when the run hangs.
  absl::StatusOr<RunResult> Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto over = [this] { return result_.finished || result_.batches.size() == max_steps_; };
    if (!changed_.wait_for(lock, kHangs, over))
      return absl::DeadlineExceededError("the run neither ended nor came to its last step");
    return result_;
  }

 private:
  bool AnyVariable() const {
    for (const BatchTensor& tensor : tensors_) {
      if (!tensor.fixed()) return true;
    }
    return false;
  }

  const std::vector<BatchTensor> tensors_;
  const uint64_t max_steps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> memory_[64];
  std::unique_ptr<uint8_t[]> variable_[64];
  std::deque<int> free_;
  uint64_t next_claim_ = 0;
  bool interrupted_ = false;
  RunResult result_;
};

}  // namespace

std::vector<std::string> Batch::Strings(size_t tensor) const {
  const std::string& bytes = tensors[tensor];
  std::vector<int64_t> offsets(info.rows + 1);
  const size_t header = offsets.size() * sizeof(int64_t);
  REQUIRE(bytes.size() >= header);
  std::memcpy(offsets.data(), bytes.data(), header);
  std::vector<std::string> values;
  for (uint32_t row = 0; row < info.rows; ++row)
    values.push_back(bytes.substr(header + offsets[row], offsets[row + 1] - offsets[row]));
  return values;
}

absl::StatusOr<std::shared_ptr<const Plan>> PlanText(const std::string& spec_text,
                                                     FileSystem& files) {
  v1::PipelineSpec spec;
  if (!google::protobuf::TextFormat::ParseFromString(spec_text, &spec))
    return absl::InvalidArgumentError("not the text of a spec");
  return MakePlan(spec, files);
}

namespace {

// A run that goes on.
struct Running {
  std::unique_ptr<VectorSink> sink;
  std::unique_ptr<Executor> executor;
};

absl::StatusOr<Running> Begin(std::shared_ptr<const Plan> plan, const RunOptions& options) {
  absl::StatusOr<v1::Fingerprint> fingerprint = FingerprintOf(*plan);
  if (!fingerprint.ok()) return fingerprint.status();
  ExecutorOptions executor_options;
  executor_options.prefixes = options.prefixes;
  executor_options.pipeline = options.pipeline;
  executor_options.maps = options.maps;
  // What a run takes is charged to the account of the thread that asks for it.
  if (MemoryAccount* const account = MemoryAccount::OfThisThread())
    executor_options.memory = account->shared_from_this();
  executor_options.notice = options.notice;
  executor_options.helpers = HelpedRuns::Helpers();
  executor_options.fingerprint = *fingerprint;
  executor_options.workers = options.workers;
  executor_options.worker_nice = 0;
  if (!options.cursor.empty()) {
    absl::StatusOr<ResumePoint> start =
        ReadCursor(options.cursor, *fingerprint,
                   options.allow_changed_work ? ChangedWork::kAllow : ChangedWork::kRefuse);
    if (!start.ok()) return start.status();
    executor_options.start = *std::move(start);
  }
  Running running;
  running.sink = std::make_unique<VectorSink>(*plan, options);
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::Create(plan, *running.sink, executor_options);
  if (!executor.ok()) return executor.status();
  running.executor = *std::move(executor);
  return running;
}

bool AreReady(const Executor& executor, size_t count) {
  const auto until = std::chrono::steady_clock::now() + kHangs;
  while (count > 0 && std::chrono::steady_clock::now() < until) {
    const std::vector<HelperStats> helpers = executor.Snapshot().helpers;
    if (static_cast<size_t>(std::count_if(helpers.begin(), helpers.end(), [](const auto& one) {
          return one.state == "ready";
        })) >= count) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return count == 0;
}

}  // namespace

absl::StatusOr<RunResult> TryRunPlan(std::shared_ptr<const Plan> plan, const RunOptions& options) {
  absl::StatusOr<Running> running = Begin(std::move(plan), options);
  if (!running.ok()) return running.status();
  if (!AreReady(*running->executor, HelpedRuns::Ready()))
    return absl::DeadlineExceededError("the helpers are not ready");
  if (absl::Status status = running->executor->Start(); !status.ok()) return status;
  absl::StatusOr<RunResult> result = running->sink->Wait();
  running->executor->Stop();
  if (result.ok()) {
    result->stats = running->executor->Snapshot();
    result->skipped = running->executor->Skipped();
  }
  return result;
}

std::vector<RunResult> RunTogether(const std::vector<PlannedRun>& runs) {
  std::vector<Running> all;
  for (const PlannedRun& run : runs) {
    absl::StatusOr<Running> running = Begin(run.plan, run.options);
    INFO(running.status().ToString());
    REQUIRE(running.ok());
    all.push_back(*std::move(running));
  }
  for (Running& running : all) REQUIRE(running.executor->Start().ok());
  std::vector<RunResult> results;
  for (Running& running : all) {
    absl::StatusOr<RunResult> result = running.sink->Wait();
    INFO(result.status().ToString());
    REQUIRE(result.ok());
    results.push_back(*std::move(result));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    results[i].stats = all[i].executor->Snapshot();
    all[i].executor->Stop();
  }
  return results;
}

RunResult RunPlan(std::shared_ptr<const Plan> plan, const RunOptions& options) {
  absl::StatusOr<RunResult> result = TryRunPlan(std::move(plan), options);
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  return *std::move(result);
}

RunResult RunText(const std::string& spec_text, const RunOptions& options) {
  absl::StatusOr<std::shared_ptr<const Plan>> plan = PlanText(spec_text);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return RunPlan(*plan, options);
}

std::string WithoutCounts(const std::string& cursor) {
  constexpr size_t kHeaderBytes = 8;
  v1::Cursor message;
  REQUIRE(cursor.size() > kHeaderBytes);
  REQUIRE(message.ParseFromString(cursor.substr(kHeaderBytes)));
  message.mutable_fingerprint()->clear_counts();
  return message.SerializeAsString();
}

std::vector<int64_t> Int64s(const RunResult& result, size_t tensor) {
  std::vector<int64_t> values;
  for (const Batch& batch : result.batches) {
    for (int64_t value : batch.As<int64_t>(tensor)) values.push_back(value);
  }
  return values;
}

}  // namespace penstock::test
