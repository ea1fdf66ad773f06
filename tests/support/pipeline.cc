#include "tests/support/pipeline.h"

#include <condition_variable>
#include <deque>
#include <mutex>

#include "google/protobuf/text_format.h"
#include "server/base/file.h"
#include "server/engine/executor.h"
#include "tests/support/catch.h"

namespace penstock::test {
namespace {

// Slots of plain memory; a published step is copied out and its slot is free again.
class VectorSink final : public BatchSink {
 public:
  VectorSink(const Plan& plan, const RunOptions& options)
      : tensors_(plan.tensors()), max_steps_(options.max_steps) {
    for (int slot = 0; slot < options.slots; ++slot) {
      for (const BatchTensor& tensor : tensors_)
        memory_[slot].emplace_back(*NumBytes(tensor.type) + 64, '\x5a');
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
    for (std::string& bytes : memory_[claimed->slot])
      claimed->tensors.push_back(reinterpret_cast<uint8_t*>(bytes.data()));
    return true;
  }

  void Publish(const ClaimedSlot& slot, const StepInfo& info) override {
    std::lock_guard<std::mutex> lock(mutex_);
    Batch batch{info, {}};
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const size_t full_bytes = memory_[slot.slot][i].size() - 64;
      const size_t bytes =
          tensors_[i].batched ? full_bytes / tensors_[i].type.shape[0] * info.rows : full_bytes;
      batch.tensors.push_back(memory_[slot.slot][i].substr(0, bytes));
      // What a step leaves behind must not pass for the next one's.
      memory_[slot.slot][i].assign(full_bytes + 64, '\x5a');
    }
    result_.batches.push_back(std::move(batch));
    free_.push_back(slot.slot);
    changed_.notify_all();
  }

  void Finish(const absl::Status& status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    CHECK_FALSE(result_.finished);
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

  RunResult Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock,
                  [this] { return result_.finished || result_.batches.size() == max_steps_; });
    return result_;
  }

 private:
  const std::vector<BatchTensor> tensors_;
  const uint64_t max_steps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> memory_[64];
  std::deque<int> free_;
  uint64_t next_claim_ = 0;
  bool interrupted_ = false;
  RunResult result_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Plan>> PlanText(const std::string& spec_text) {
  v1::PipelineSpec spec;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(spec_text, &spec));
  return MakePlan(spec, LocalFileSystem());
}

RunResult RunPlan(std::shared_ptr<const Plan> plan, const RunOptions& options) {
  VectorSink sink(*plan, options);
  std::unique_ptr<Executor> executor = Executor::Create(plan, sink, {options.workers, 0});
  executor->Start();
  RunResult result = sink.Wait();
  executor->Stop();
  return result;
}

RunResult RunText(const std::string& spec_text, const RunOptions& options) {
  absl::StatusOr<std::shared_ptr<const Plan>> plan = PlanText(spec_text);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return RunPlan(*plan, options);
}

std::vector<int64_t> Int64s(const RunResult& result, size_t tensor) {
  std::vector<int64_t> values;
  for (const Batch& batch : result.batches) {
    for (int64_t value : batch.As<int64_t>(tensor)) values.push_back(value);
  }
  return values;
}

}  // namespace penstock::test
