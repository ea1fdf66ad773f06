// The error of data that a decoder takes for damaged.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock {

// DataLoss: "WAV data is damaged: …", where `format` is "WAV".
template <typename... Words>
absl::Status DamagedData(absl::string_view format, const Words&... words) {
  return absl::DataLossError(absl::StrCat(format, " data is damaged: ", words...));
}

}  // namespace penstock
