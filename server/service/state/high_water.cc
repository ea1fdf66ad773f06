#include "server/service/state/high_water.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/monotonic_clock.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr uint64_t kNoLimit = UINT64_MAX;
// A look is at least so long.
constexpr uint64_t kLookNs = 200'000'000;
// What was claimed in less says nothing about how much is made.
constexpr uint64_t kShortestNs = 1'000'000;

uint64_t Sum(uint64_t a, uint64_t b) { return a > kNoLimit - b ? kNoLimit : a + b; }

}  // namespace

std::shared_ptr<HighWater> HighWater::Create(HighWaterOptions options) {
  if (options.now_ns == nullptr)
    options.now_ns = [] { return static_cast<uint64_t>(MonotonicNs()); };
  return std::shared_ptr<HighWater>(new HighWater(std::move(options)));
}

HighWater::HighWater(HighWaterOptions options)
    : options_(std::move(options)),
      before_(options_.is_of_before ? options_.limit : 0),
      limit_(options_.write == nullptr ? kNoLimit : options_.limit),
      range_(options_.is_of_before ? kLeastRange : kFirstLimit / 2),
      looked_ns_(options_.now_ns()),
      mark_ns_(looked_ns_) {}

bool HighWater::MayClaim(uint64_t step) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return false;
  if (step >= limit_) {
    if (refused_ns_ == 0) refused_ns_ = options_.now_ns();
    refused_step_ = step;
    Ask(step);
    return false;
  }
  claimed_ = std::max(claimed_, step + 1);
  ++claims_;
  if (limit_ - claimed_ < range_) Ask(step);
  return true;
}

double HighWater::RateSince(uint64_t claims, uint64_t since_ns) const {
  const uint64_t ns = std::max(options_.now_ns() - since_ns, kShortestNs);
  return 1e9 * static_cast<double>(claims_ - claims) / static_cast<double>(ns);
}

uint64_t HighWater::RangeAt(double rate) const {
  const double seconds =
      std::max(absl::ToDoubleSeconds(kLead), 4e-9 * static_cast<double>(write_ns_));
  const double steps = std::min(rate * seconds, static_cast<double>(kMostRange));
  return std::max(kLeastRange, static_cast<uint64_t>(steps));
}

void HighWater::SetRange() { range_ = RangeAt(*std::max_element(rates_.begin(), rates_.end())); }

void HighWater::Ask(uint64_t need) {
  if (writing_ || options_.write == nullptr || closed_) return;
  const uint64_t now_ns = options_.now_ns();
  if (now_ns < retry_ns_) return;
  // Faster than at the last looks, perhaps: then what was reserved for those is gone in no time.
  const uint64_t range = std::max(range_, RangeAt(RateSince(mark_claims_, mark_ns_)));
  mark_ns_ = now_ns;
  mark_claims_ = claims_;
  const uint64_t from = std::max(claimed_, Sum(need, 1));
  WriteLater(std::max(limit_, Sum(from, 2 * range)));
}

void HighWater::WriteLater(uint64_t target) {
  writing_ = true;
  target_ = target;
  asked_ns_ = options_.now_ns();
  // Where there is no room for it now, Look() tries again, or whoever claims.
  if (!options_.run_later([self = shared_from_this()] { self->WriteNow(); })) writing_ = false;
}

void HighWater::WriteNow() {
  std::lock_guard<std::mutex> write_lock(write_mutex_);
  uint64_t target;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    target = target_;
    if (closed_) return;
  }
  const absl::Status written = options_.write(target);
  const bool failed_before = [this] {
    std::lock_guard<std::mutex> lock(mutex_);
    return retry_ns_ != 0;
  }();
  if (!written.ok() && !failed_before) {
    spdlog::error(
        "pipeline {}: how far it is handed out could not be written down, and is tried again: {}; "
        "it goes on up to what was written before",
        options_.pipeline, written.ToString());
  } else if (written.ok() && failed_before) {
    spdlog::info("pipeline {}: how far it is handed out is written down again", options_.pipeline);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    writing_ = false;
    const uint64_t now_ns = options_.now_ns();
    if (written.ok()) {
      write_ns_ = now_ns - asked_ns_;
      limit_ = target;
      retry_ns_ = 0;
      SetRange();
      if (refused_ns_ != 0 && refused_step_ >= limit_) {
        Ask(refused_step_);
      } else {
        refused_ns_ = 0;
      }
    } else {
      retry_ns_ = now_ns + static_cast<uint64_t>(absl::ToInt64Nanoseconds(kRetry));
    }
  }
  changed_.notify_all();
}

void HighWater::WaitToClaim(uint64_t step, absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t wakes = wakes_;
  changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                    [&] { return (step < limit_ && !closed_) || wakes_ != wakes; });
}

void HighWater::Wake() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++wakes_;
  }
  changed_.notify_all();
}

void HighWater::Published(uint64_t step) {
  uint64_t handed = handed_.load(std::memory_order_relaxed);
  while (handed < step && !handed_.compare_exchange_weak(handed, step, std::memory_order_relaxed)) {
  }
}

uint64_t HighWater::first_free() const {
  return std::max(before_, handed_.load(std::memory_order_relaxed));
}

uint64_t HighWater::from_before() const { return before_; }

void HighWater::Raise(uint64_t step) {
  Published(step);
  std::lock_guard<std::mutex> lock(mutex_);
  if (step > limit_) Ask(step - 1);
}

void HighWater::Look() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (options_.write == nullptr || closed_) return;
  const uint64_t now_ns = options_.now_ns();
  if (now_ns - looked_ns_ < kLookNs) return;
  rates_[look_++ % rates_.size()] = RateSince(looked_claims_, looked_ns_);
  looked_ns_ = mark_ns_ = now_ns;
  looked_claims_ = mark_claims_ = claims_;
  SetRange();
  if (writing_ || now_ns < retry_ns_) return;
  const uint64_t from = std::max(before_, claimed_);
  if (refused_ns_ != 0) {
    Ask(refused_step_);
  } else if (claims_ > 0 && limit_ - claimed_ < range_) {
    Ask(claimed_);
  } else if (limit_ > from && limit_ - from > 4 * range_) {
    // First here: nothing is claimed beyond what will be on the disk.
    limit_ = Sum(from, 2 * range_);
    WriteLater(limit_);
  }
}

std::optional<uint64_t> HighWater::HeldBackNs() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (refused_ns_ == 0 || closed_) return std::nullopt;
  return options_.now_ns() - refused_ns_;
}

absl::Status HighWater::WriteFirst() {
  std::lock_guard<std::mutex> write_lock(write_mutex_);
  uint64_t limit;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    limit = limit_;
  }
  return options_.write(limit);
}

void HighWater::Close() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

absl::Status HighWater::WriteLast() {
  if (options_.write == nullptr) return absl::OkStatus();
  std::lock_guard<std::mutex> write_lock(write_mutex_);
  return options_.write(first_free());
}

}  // namespace penstock
