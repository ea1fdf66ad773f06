// How many requests are under way: more while that brings more bytes, half as many when the server
// says that it is too much.
//
// Threads:  one.
// Limits:   4 to 256.
// Source:   additive increase, multiplicative decrease (Chiu and Jain, 1989).
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock {

class Aimd {
 public:
  static constexpr int kLeast = 4;
  static constexpr int kMost = 256;

  explicit Aimd(int begin = 16, int most = kMost) : most_(most), limit_(begin) {}

  int limit() const { return limit_; }

  // A request has brought its bytes. `is_full`: as many as the limit were under way.
  void Arrived(uint64_t bytes, int64_t now_ns, bool is_full) {
    window_bytes_ += bytes;
    was_full_ |= is_full;
    if (window_begin_ns_ == 0) window_begin_ns_ = now_ns;
    if (++arrived_ < limit_ || now_ns - window_begin_ns_ < kWindowNs) return;
    const double rate = static_cast<double>(window_bytes_) / (now_ns - window_begin_ns_);
    if (was_full_ && rate > kBetter * best_rate_)
      limit_ = std::min(most_, limit_ + std::max(1, limit_ / 4));
    // What was best once is forgotten slowly: the network changes.
    best_rate_ = std::max(rate, kForgotten * best_rate_);
    BeginWindow(now_ns);
  }

  // The server said 429 or 503. At most once for the requests that were under way together.
  void TooMuch(int64_t now_ns) {
    if (now_ns - halved_ns_ < kWindowNs && halved_ns_ != 0) return;
    halved_ns_ = now_ns;
    limit_ = std::max(kLeast, limit_ / 2);
    best_rate_ = 0;
    BeginWindow(now_ns);
  }

 private:
  static constexpr int64_t kWindowNs = 250'000'000;
  static constexpr double kBetter = 1.05;
  static constexpr double kForgotten = 0.98;

  void BeginWindow(int64_t now_ns) {
    window_begin_ns_ = now_ns;
    window_bytes_ = 0;
    arrived_ = 0;
    was_full_ = false;
  }

  const int most_;
  int limit_;
  int arrived_ = 0;
  bool was_full_ = false;
  uint64_t window_bytes_ = 0;
  int64_t window_begin_ns_ = 0;
  int64_t halved_ns_ = 0;
  double best_rate_ = 0;  // bytes a nanosecond
};

}  // namespace penstock
