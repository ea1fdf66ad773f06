// How many requests are under way: more while that brings more bytes, half as many when the server
// says that it is too much.
//
//     measure ──► raise: twice as many, later a quarter more ──► measure ──► more bytes: raise again
//        ▲                                                          │
//        └──── rest: as many as before, for kRestWindows ◄──────────┘ not more
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

  explicit Aimd(int begin = 16, int most = kMost) : most_(most), limit_(std::min(begin, most)) {}

  int limit() const { return limit_; }

  // So many are allowed from now on, if that is more.
  void Raise(int limit) {
    limit = std::min(limit, most_);
    if (limit <= limit_) return;
    limit_ = before_ = limit;
    is_trying_ = false;
    Settle(limit_);
  }

  // A request has brought its bytes. `is_full`: as many as the limit were under way.
  void Arrived(uint64_t bytes, int64_t now_ns, bool is_full) {
    // What was asked for before the limit was raised says nothing about it.
    if (settling_ > 0) {
      if (--settling_ == 0) BeginWindow(now_ns);
      return;
    }
    window_bytes_ += bytes;
    was_full_ |= is_full;
    if (++arrived_ < limit_ || now_ns - window_begin_ns_ < kWindowNs) return;
    const double rate = static_cast<double>(window_bytes_) / (now_ns - window_begin_ns_);
    BeginWindow(now_ns, was_full_, rate);
  }

  // The server said 429 or 503. At most once for the requests that were under way together.
  void TooMuch(int64_t now_ns) {
    if (now_ns - halved_ns_ < kWindowNs && halved_ns_ != 0) return;
    halved_ns_ = now_ns;
    limit_ = std::max(kLeast, limit_ / 2);
    Rest();
    Settle(limit_);
  }

 private:
  static constexpr int64_t kWindowNs = 250'000'000;
  // What a quarter more must bring, and twice as many, which would bring twice as much where the
  // wait for first bytes is all that there is.
  static constexpr double kBetter = 1.1;
  static constexpr double kBetterDoubled = 1.25;
  static constexpr int kRestWindows = 8;

  void BeginWindow(int64_t now_ns) {
    window_begin_ns_ = now_ns;
    window_bytes_ = 0;
    arrived_ = 0;
    was_full_ = false;
  }
  void Settle(int arrivals) { settling_ = std::max(1, arrivals); }
  void Rest() {
    is_trying_ = false;
    doubles_ = false;
    resting_ = kRestWindows;
  }

  // A window has ended with that rate, in bytes a nanosecond.
  void BeginWindow(int64_t now_ns, bool was_full, double rate) {
    BeginWindow(now_ns);
    if (!was_full) return;
    if (is_trying_ && rate < (doubles_ ? kBetterDoubled : kBetter) * rate_before_) {
      limit_ = before_;
      Rest();
      return Settle(limit_);
    }
    // The network changes: what has brought nothing once is tried again.
    if (resting_ > 0 && --resting_ > 0) return;
    if (limit_ == most_) return;
    before_ = limit_;
    rate_before_ = rate;
    is_trying_ = true;
    limit_ = std::min(most_, doubles_ ? 2 * limit_ : limit_ + std::max(1, limit_ / 4));
    Settle(before_);
  }

  const int most_;
  int limit_;
  int before_ = limit_;     // the limit that was raised last
  double rate_before_ = 0;  // and the rate that it had
  bool is_trying_ = false;  // whether more bring more
  bool doubles_ = true;     // as long as that has brought more each time
  int resting_ = 0;         // windows without a try
  int settling_ = 1;        // arrivals until a window begins
  int arrived_ = 0;
  bool was_full_ = false;
  uint64_t window_bytes_ = 0;
  int64_t window_begin_ns_ = 0;
  int64_t halved_ns_ = 0;
};

}  // namespace penstock
