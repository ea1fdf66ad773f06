#include "client/ctl/words/describe_helpers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/words/describe.h"

namespace penstock::ctl {

std::string DescribeHelper(const v1::HelperStats& helper) {
  std::string text =
      absl::StrFormat("helper %s: %s, has %u %s, made %u (%s)", helper.address(), helper.state(),
                      helper.steps_away(), helper.steps_away() == 1 ? "step" : "steps",
                      helper.steps(), ByteCount(helper.bytes()));
  if (helper.step_ms() > 0) absl::StrAppendFormat(&text, ", %.1f ms a step", helper.step_ms());
  if (helper.given_back() > 0)
    absl::StrAppendFormat(&text, ", %u were made by others instead", helper.given_back());
  if (helper.left_out() > 0)
    absl::StrAppendFormat(&text, "; left out %u %s, at last: %s", helper.left_out(),
                          helper.left_out() == 1 ? "time" : "times", helper.reason());
  return text;
}

}  // namespace penstock::ctl
