// An executor of one worker over a sink that counts its steps, for tests of what waits for what.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/run/executor.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {

// What takes longer hangs.
inline constexpr std::chrono::seconds kHangs{60};

// Counts the steps; each has a slot at once.
class CountingSink final : public BatchSink {
 public:
  explicit CountingSink(const Plan& plan) : bytes_(plan.slot_bytes() + 64) {}
  bool TryClaim(ClaimedSlot* claimed) override {
    std::lock_guard<std::mutex> lock(mutex_);
    memory_.push_back(std::make_unique<uint8_t[]>(bytes_));
    claimed->tensors = {memory_.back().get()};
    return true;
  }
  void Publish(const ClaimedSlot&, const StepInfo&) override {
    std::lock_guard<std::mutex> lock(mutex_);
    ++steps_;
    changed_.notify_all();
  }
  void Finish(const absl::Status& status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    finished_ = true;
    status_ = status;
    changed_.notify_all();
  }
  void WaitForSlot(absl::Duration) override {}
  void Interrupt() override {}

  bool WaitForSteps(uint64_t steps) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kHangs, [&] { return steps_ >= steps; });
  }
  bool WaitForEnd() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kHangs, [this] { return finished_; });
  }
  uint64_t steps() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return steps_;
  }
  absl::Status status() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

 private:
  const size_t bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<uint8_t[]>> memory_;  // under mutex_, as those below
  uint64_t steps_ = 0;
  bool finished_ = false;
  absl::Status status_;
};

inline std::unique_ptr<Executor> Started(const std::shared_ptr<const Plan>& plan, BatchSink& sink,
                                         ExecutorOptions options = {}) {
  options.workers = 1;
  auto executor = Executor::Create(plan, sink, options);
  INFO(executor.status().ToString());
  REQUIRE(executor.ok());
  REQUIRE((*executor)->Start().ok());
  return *std::move(executor);
}

inline std::shared_ptr<const Plan> Planned(const std::string& stages, FileSystem& files) {
  auto plan = PlanText(Stages(stages), files);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return *std::move(plan);
}

}  // namespace penstock::test
