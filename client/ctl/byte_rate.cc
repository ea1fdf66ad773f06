#include "client/ctl/byte_rate.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/readable_bytes.h"

namespace penstock::ctl {
namespace {

// Longer ones are no more than guesses.
constexpr double kLongestS = 100 * 3600;

}  // namespace

std::string ShownRate(uint64_t done, uint64_t moved, uint64_t total, double seconds) {
  std::string text = absl::StrCat(ReadableBytes(done), " of ", ReadableBytes(total));
  if (seconds <= 0 || done == 0) return text;
  absl::StrAppend(&text, ", ",
                  ReadableBytes(static_cast<uint64_t>(static_cast<double>(moved) / seconds)), "/s");
  const double left_s =
      static_cast<double>(total - std::min(done, total)) / static_cast<double>(done) * seconds;
  if (left_s >= kLongestS) return text;
  const auto whole = static_cast<int64_t>(std::ceil(left_s));
  if (whole >= 3600) {
    absl::StrAppendFormat(&text, ", %d:%02d:%02d left", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    absl::StrAppendFormat(&text, ", %d:%02d left", whole / 60, whole % 60);
  }
  return text;
}

}  // namespace penstock::ctl
