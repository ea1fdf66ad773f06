// How often requests are sent again, so that a server in trouble is not given more to do than
// before: tokens, of which what goes well brings some and each further try takes one. And how long
// to wait before it.
//
// Threads:  one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

namespace penstock {

class RetryBudget {
 public:
  // A token for every ten good requests, one a second, and at most `most`.
  explicit RetryBudget(double most = 100) : most_(most), tokens_(most) {}

  void Good() { tokens_ = std::min(most_, tokens_ + 0.1); }
  bool Take(int64_t now_ns) {
    if (last_ns_ != 0) tokens_ = std::min(most_, tokens_ + (now_ns - last_ns_) * 1e-9);
    last_ns_ = now_ns;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  const double most_;
  double tokens_;
  int64_t last_ns_ = 0;
};

// Full jitter: anything from nothing to 100 ms, 200 ms, … 10 s.
template <typename Dice>
int64_t RetryPauseNs(int tries, Dice& dice) {
  const int64_t most =
      std::min<int64_t>(10'000'000'000, int64_t{100'000'000} << std::min(tries, 10));
  return std::uniform_int_distribution<int64_t>(0, most)(dice);
}

}  // namespace penstock
