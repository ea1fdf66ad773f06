#include "tests/support/pipeline.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>

#include "google/protobuf/text_format.h"
#include "server/base/file.h"
#include "server/engine/cursor.h"
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
        memory_[slot].emplace_back(tensor.fixed() ? *NumBytes(tensor.type) + 64 : 0, '\x5a');
      variable_[slot].resize(kVariableBytes);
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
      claimed->tensors.push_back(bytes.empty() ? nullptr
                                               : reinterpret_cast<uint8_t*>(bytes.data()));
    claimed->variable = variable_[claimed->slot].data();
    claimed->variable_bytes = kVariableBytes;
    return true;
  }

  void Publish(const ClaimedSlot& slot, const StepInfo& info) override {
    std::lock_guard<std::mutex> lock(mutex_);
    Batch batch{info, {}};
    size_t num_variable = 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!tensors_[i].fixed()) {
        batch.tensors.push_back(
            CopyStrings(slot.variable, info.extents[num_variable++], info.rows));
        continue;
      }
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

  static std::string CopyStrings(const uint8_t* variable, const TensorExtent& extent,
                                 uint32_t rows) {
    const auto* offsets = reinterpret_cast<const int64_t*>(variable + extent.parts[0].offset);
    const auto* bytes = reinterpret_cast<const char*>(variable + extent.parts[1].offset);
    std::string out;
    for (uint32_t row = 0; row < rows; ++row) {
      const uint64_t size = offsets[row + 1] - offsets[row];
      out.append(reinterpret_cast<const char*>(&size), sizeof(size));
      out.append(bytes + offsets[row], size);
    }
    return out;
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
  static constexpr size_t kVariableBytes = 4 << 20;
  std::vector<std::string> memory_[64];
  std::vector<uint8_t> variable_[64];
  std::deque<int> free_;
  uint64_t next_claim_ = 0;
  bool interrupted_ = false;
  RunResult result_;
};

}  // namespace

std::vector<std::string> Batch::Strings(size_t tensor) const {
  std::vector<std::string> strings;
  const std::string& bytes = tensors[tensor];
  for (size_t at = 0; at < bytes.size();) {
    uint64_t size = 0;
    std::memcpy(&size, bytes.data() + at, sizeof(size));
    strings.push_back(bytes.substr(at + sizeof(size), size));
    at += sizeof(size) + size;
  }
  return strings;
}

absl::StatusOr<std::shared_ptr<const Plan>> PlanText(const std::string& spec_text) {
  v1::PipelineSpec spec;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(spec_text, &spec));
  return MakePlan(spec, LocalFileSystem());
}

RunResult RunPlan(std::shared_ptr<const Plan> plan, const RunOptions& options) {
  ExecutorOptions executor_options;
  executor_options.workers = options.workers;
  executor_options.worker_nice = 0;
  absl::StatusOr<v1::Fingerprint> fingerprint = FingerprintOf(*plan);
  REQUIRE(fingerprint.ok());
  if (!options.cursor.empty()) {
    absl::StatusOr<ResumePoint> start = ReadCursor(options.cursor, *fingerprint);
    INFO(start.status().ToString());
    REQUIRE(start.ok());
    executor_options.start = *std::move(start);
  }
  executor_options.fingerprint = *std::move(fingerprint);
  VectorSink sink(*plan, options);
  absl::StatusOr<std::unique_ptr<Executor>> created =
      Executor::Create(plan, sink, executor_options);
  REQUIRE(created.ok());
  const std::unique_ptr<Executor> executor = *std::move(created);
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
