// Runs of tests/support/pipeline.h that others help.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "server/engine/run/step_lender.h"

namespace penstock::test {

// While it is there, each run that this thread begins has these helpers, and begins when so many of
// them are ready.
class HelpedRuns {
 public:
  HelpedRuns(std::shared_ptr<StepLenders> helpers, size_t ready)
      : helpers_(std::move(helpers)), ready_(ready), before_(std::exchange(present_, this)) {}
  ~HelpedRuns() { present_ = before_; }
  HelpedRuns(const HelpedRuns&) = delete;
  HelpedRuns& operator=(const HelpedRuns&) = delete;

  static std::shared_ptr<StepLenders> Helpers() {
    return present_ == nullptr ? nullptr : present_->helpers_;
  }
  static size_t Ready() { return present_ == nullptr ? 0 : present_->ready_; }

 private:
  static thread_local inline HelpedRuns* present_ = nullptr;

  const std::shared_ptr<StepLenders> helpers_;
  const size_t ready_;
  HelpedRuns* const before_;
};

}  // namespace penstock::test
