// When so much has been skipped that the stream ends with an error.
//
// Threads: constant.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock {

struct SkipLimits {
  // A fraction is judged from so many on, and at the end of a pass.
  static constexpr uint64_t kJudgedFrom = 1000;

  uint64_t skipped_max = UINT64_MAX;
  double skipped_fraction_max = 1;

  // Of one pass: places or elements that were skipped, and those that were handed on. DataLoss when
  // it is too much.
  absl::Status Check(uint64_t skipped, uint64_t taken, bool at_end) const {
    if (skipped == 0) return absl::OkStatus();
    if (skipped > skipped_max) {
      return absl::DataLossError(
          absl::StrCat("too many damaged places: ", skipped, " > ", skipped_max, " (max_skipped)"));
    }
    if (!at_end && skipped + taken < kJudgedFrom) return absl::OkStatus();
    const double fraction = static_cast<double>(skipped) / static_cast<double>(skipped + taken);
    if (fraction <= skipped_fraction_max) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("too large a part is damaged: ", skipped, " of ",
                                            skipped + taken, ", ", fraction, " > ",
                                            skipped_fraction_max, " (max_skipped_fraction)"));
  }
};

// What an `ignore_errors` asks of the stages in front of it.
struct IgnoredFailures {
  std::string stage;  // the name of the ignore_errors
  SkipLimits limits;  // of each part of the plan that leaves elements out

  // SkipLimits::Check(), in the name of the stage.
  absl::Status Check(uint64_t skipped, uint64_t taken, bool at_end) const {
    const absl::Status status = limits.Check(skipped, taken, at_end);
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat("stage ", stage, ": ", status.message()));
  }
};

// The limits of a message that has the fields max_skipped and max_skipped_fraction; `prefix` stands
// in front of their names in messages.
template <typename Message>
absl::Status ReadSkipLimits(const Message& message, absl::string_view prefix, SkipLimits* limits) {
  if (message.has_max_skipped()) {
    if (message.max_skipped() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(prefix, "max_skipped: expected at least 0, found ", message.max_skipped()));
    }
    limits->skipped_max = static_cast<uint64_t>(message.max_skipped());
  }
  if (message.has_max_skipped_fraction()) {
    if (!(message.max_skipped_fraction() >= 0 && message.max_skipped_fraction() <= 1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          prefix, "max_skipped_fraction: expected 0 to 1, found ", message.max_skipped_fraction()));
    }
    limits->skipped_fraction_max = message.max_skipped_fraction();
  }
  return absl::OkStatus();
}

}  // namespace penstock
