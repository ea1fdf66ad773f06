#include "server/service/stream.h"

#include "server/engine/step_count.h"
#include "spdlog/spdlog.h"

namespace penstock {

absl::StatusOr<std::shared_ptr<Stream>> Stream::Create(std::shared_ptr<const Plan> plan,
                                                       const StreamOptions& options) {
  absl::StatusOr<std::unique_ptr<RingSink>> sink =
      RingSink::Create(options.name, plan->tensors(), options.slots, plan->structure(),
                       plan->variable_bytes(), options.executor.start.step, CountSteps(*plan),
                       options.start_cursor, options.split_log.get());
  if (!sink.ok()) return sink.status();
  std::shared_ptr<Stream> stream(new Stream(*std::move(sink), options.split_log));
  ExecutorOptions executor_options = options.executor;
  executor_options.notice = [name = options.name](const std::string& text) {
    spdlog::warn("pipeline {}: {}", name, text);
  };
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::Create(std::move(plan), *stream->sink_, executor_options);
  if (!executor.ok()) return executor.status();
  stream->executor_ = *std::move(executor);
  return stream;
}

void Stream::Start() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (executor_ != nullptr) executor_->Start();
}

void Stream::Stop(const absl::Status& reason) {
  std::unique_ptr<Executor> executor;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    executor = std::move(executor_);
  }
  if (executor == nullptr) return;
  executor->Stop();
  sink_->Close(reason);
}

std::optional<ExecutorStats> Stream::Snapshot() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (executor_ == nullptr) return std::nullopt;
  return executor_->Snapshot();
}

std::vector<SkippedPlace> Stream::Skipped() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return executor_ == nullptr ? std::vector<SkippedPlace>() : executor_->Skipped();
}

std::vector<WorkerPulse> Stream::Pulses() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return executor_ == nullptr ? std::vector<WorkerPulse>() : executor_->Pulses();
}

}  // namespace penstock
