// A share in sentences.
#pragma once

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace penstock {

// 0.256 is "26 %".
inline std::string Percent(double share) { return absl::StrCat(std::lround(100 * share), " %"); }

}  // namespace penstock
