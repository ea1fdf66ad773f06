// Keeps one cause from filling the log: of the lines that differ in their numbers only, some are
// written in each ten seconds and the rest are counted.
//
// Threads:  one at a time.
// Limits:   kMaxCauses at a time; beyond them, the one that began longest ago is forgotten.
// Cost:     a hash of the line and a look-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace penstock {

class LogLimiter {
 public:
  static constexpr size_t kMaxCauses = 256;
  static constexpr int64_t kWindowNs = 10'000'000'000;

  explicit LogLimiter(int lines_per_cause) : lines_per_cause_(lines_per_cause) {}

  void set_lines_per_cause(int lines) { lines_per_cause_ = lines; }

  struct Verdict {
    bool write = false;
    // How many lines of this cause were left out before this one.
    uint64_t left_out = 0;
  };
  // `now_ns`: of a monotonic clock.
  Verdict Judge(std::string_view line, int64_t now_ns);

 private:
  struct Cause {
    int64_t began_ns = 0;
    int written = 0;
    uint64_t left_out = 0;
  };

  int lines_per_cause_;
  std::unordered_map<size_t, Cause> causes_;  // by the hash of the line without its numbers
};

}  // namespace penstock
