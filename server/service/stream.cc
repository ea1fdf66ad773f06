#include "server/service/stream.h"

#include "ring/futex.h"
#include "server/cuda/expansions.h"
#include "server/engine/step_count.h"
#include "spdlog/spdlog.h"

namespace penstock {

absl::StatusOr<std::shared_ptr<Stream>> Stream::Create(std::shared_ptr<const Plan> plan,
                                                       const StreamOptions& options) {
  absl::StatusOr<std::unique_ptr<RingSink>> sink = RingSink::Create(
      options.name, plan->tensors(), options.slots, plan->structure(), plan->variable_bytes(),
      options.executor.start.step, CountSteps(*plan), options.start_cursor, options.split_log.get(),
      /*slots_grow=*/!plan->spec().ring().has_device());
  if (!sink.ok()) return sink.status();
  std::shared_ptr<Stream> stream(new Stream(*std::move(sink), options.split_log));
  if (plan->spec().ring().has_device()) {
    const absl::Status status = stream->AddDevice(*plan, options);
    if (!status.ok()) return status;
  }
  ExecutorOptions executor_options = options.executor;
  executor_options.notice = [name = options.name](const std::string& text) {
    spdlog::warn("pipeline {}: {}", name, text);
  };
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::Create(std::move(plan), stream->producers_sink(), executor_options);
  if (!executor.ok()) return executor.status();
  stream->executor_ = *std::move(executor);
  return stream;
}

absl::Status Stream::AddDevice(const Plan& plan, const StreamOptions& options) {
  DeviceRingOptions device;
  device.device = plan.spec().ring().device();
  device.tensors = plan.tensors();
  ring::Status status = ReadExpansions(plan.spec().ring(), plan.tensors(), &device.expansions);
  if (!status.ok()) return FromRing(status);
  for (uint32_t slot = 0; slot < writer().slots(); ++slot) {
    std::vector<const uint8_t*>& tensors = device.slots.emplace_back();
    for (size_t i = 0; i < device.tensors.size(); ++i) {
      tensors.push_back(writer().tensor(static_cast<int>(slot), static_cast<int>(i)));
    }
  }
  std::unique_ptr<DeviceRing> made;
  status = DeviceRing::Create(device, &made);
  if (!status.ok()) {
    return FromRing(
        {status.code, status.message + " (ring.device of pipeline " + options.name + ")"});
  }
  if (!made->not_pinned().empty()) {
    spdlog::warn("pipeline {}: copies to the device are slower than they could be: {}",
                 options.name, made->not_pinned());
  }
  spdlog::info("pipeline {}: {} slots of CUDA device {} take {} bytes", options.name,
               device.slots.size(), device.device, made->memory_bytes());
  device_sink_ = std::make_unique<DeviceRingSink>(*sink_, std::move(made), &ring::MonotonicNs);
  return absl::OkStatus();
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
