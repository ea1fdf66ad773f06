// What a scan of a file tells while it is at work, and hears.
//
// Threads:  one.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "base/stop_flag.h"
#include "io/record/record_index.h"

namespace penstock {

class ScanProgress {
 public:
  explicit ScanProgress(const IndexOptions& options) : options_(options) {}
  // Call it every megabyte or so. An error where nobody wants the index any more, or what this
  // thread does (base/stop_flag.h).
  absl::Status At(uint64_t bytes) {
    if (IsStopped() ||
        (options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed)))
      return absl::CancelledError("the index is not wanted any more");
    if (!options_.progress || bytes < next_) return absl::OkStatus();
    options_.progress(bytes);
    next_ = bytes + kTellBytes;
    return absl::OkStatus();
  }

 private:
  static constexpr uint64_t kTellBytes = 4 << 20;

  const IndexOptions& options_;
  uint64_t next_ = 0;
};

}  // namespace penstock
