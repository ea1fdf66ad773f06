#include "server/cuda/device_ring_sink.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace penstock {
namespace {

// How long to sleep for a copy that is under way: copies take fractions of a millisecond.
constexpr absl::Duration kLookTime = absl::Microseconds(50);

}  // namespace

DeviceRingSink::DeviceRingSink(BatchSink& ring, std::unique_ptr<DeviceRing> device,
                               std::function<uint64_t()> now_ns, absl::Duration copy_time)
    : ring_(ring),
      device_(std::move(device)),
      now_ns_(std::move(now_ns)),
      copy_time_ns_(static_cast<uint64_t>(absl::ToInt64Nanoseconds(copy_time))) {}

void DeviceRingSink::Fail(absl::string_view message) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failed_.exchange(true)) return;
  // Not UNAVAILABLE, at which trainers would look for another daemon.
  ring_.Finish(absl::InternalError(message));
}

void DeviceRingSink::Finish(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_) ring_.Finish(status);
}

bool DeviceRingSink::TryClaim(ClaimedSlot* slot) {
  if (failed_) {
    waits_for_copy_ = false;
    return false;
  }
  if (!waits_for_copy_) {
    if (!ring_.TryClaim(&claimed_)) return false;
    claimed_ns_ = now_ns_();
  }
  ring::Status error;
  switch (device_->Look(static_cast<uint32_t>(claimed_.slot), &error)) {
    case cuda::Event::State::kOver:
      waits_for_copy_ = false;
      *slot = std::move(claimed_);
      return true;
    case cuda::Event::State::kWaits:
      waits_for_copy_ = true;
      if (now_ns_() - claimed_ns_ >= copy_time_ns_) {
        Fail(absl::StrCat("the device did not end a copy within ", copy_time_ns_ / 1'000'000'000,
                          " seconds"));
      }
      return false;
    case cuda::Event::State::kFailed:
      Fail(error.message);
      return false;
  }
  return false;
}

void DeviceRingSink::Publish(const ClaimedSlot& slot, const StepInfo& info) {
  const ring::Status status = device_->Copy(static_cast<uint32_t>(slot.slot));
  if (!status.ok()) {
    Fail(status.message);
    return;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_) ring_.Publish(slot, info);
}

void DeviceRingSink::WaitForSlot(absl::Duration timeout) {
  if (waits_for_copy_) {
    // A slot is there and its copy is not over: no consumer's release tells when it is.
    ring_.Rest();
    absl::SleepFor(std::min(timeout, kLookTime));
  } else {
    ring_.WaitForSlot(timeout);
  }
}

}  // namespace penstock
