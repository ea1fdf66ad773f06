// A line on a terminal's stderr that says how far a long command is. On anything else: nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace penstock::ctl {

class ProgressBar {
 public:
  // `total`: how much there is to do, in any unit: bytes, records.
  explicit ProgressBar(uint64_t total);
  // Wipes the line out.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // How much of that is done, and the name of what is being done. Drawn ten times a second at most.
  void Show(uint64_t done, const std::string& name);

  // To be called before other output to the terminal, which it would stand in the way of.
  void Clear();

 private:
  const uint64_t total_;
  const bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace penstock::ctl
