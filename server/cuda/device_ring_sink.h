// A ring whose slots lie on a device too: each step is copied there before it becomes visible in
// the ring.
//
// A device that fails, or whose copy is not over in time, ends the stream with an error that
// consumers get: it stalls nobody.
//
// Threads:  as BatchSink.
// Owns:     the device's part; the ring is the caller's and outlives it.
// Cost:     some microseconds a step; the copy itself is the device's work.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/cuda/device_ring.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock {

class DeviceRingSink : public BatchSink {
 public:
  // `now_ns`: a clock that only goes forward. `copy_time`: how long a copy may take.
  DeviceRingSink(BatchSink& ring, std::unique_ptr<DeviceRing> device,
                 std::function<uint64_t()> now_ns, absl::Duration copy_time = absl::Seconds(30));

  bool TryClaim(ClaimedSlot* slot) override;
  void Publish(const ClaimedSlot& slot, const StepInfo& info) override;
  void Finish(const absl::Status& status) override;
  void WaitForSlot(absl::Duration timeout) override;
  void Interrupt() override { ring_.Interrupt(); }
  void PassBy() override { ring_.PassBy(); }
  void Rest() override { ring_.Rest(); }

  const DeviceRing& device() const { return *device_; }

 private:
  void Fail(absl::string_view message);

  BatchSink& ring_;
  const std::unique_ptr<DeviceRing> device_;
  const std::function<uint64_t()> now_ns_;
  const uint64_t copy_time_ns_;

  // Steps are published and the stream ended one after the other, whichever thread finds the device
  // lost.
  std::mutex mutex_;
  std::atomic<bool> failed_{false};  // written under mutex_

  // Of TryClaim(): claimed from the ring, and the device still reads what is in it.
  ClaimedSlot claimed_;
  uint64_t claimed_ns_ = 0;
  std::atomic<bool> waits_for_copy_{false};  // read by WaitForSlot()
};

}  // namespace penstock
