// How much memory this process has at most taken.
//
// Threads:  any; it is of the whole process.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tests/support/catch.h"

namespace penstock::testing {

// Lowers the peak of this process's resident memory to what it has now; false where that is not
// allowed.
inline bool ForgetPeak() {
  return (std::ofstream("/proc/self/clear_refs") << "5" << std::flush).good();
}

// A number of KiB in /proc/self/status.
inline int64_t StatusKib(absl::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    absl::string_view rest = line;
    int64_t kib = 0;
    if (absl::ConsumePrefix(&rest, name) && absl::ConsumeSuffix(&rest, " kB") &&
        absl::SimpleAtoi(rest, &kib))
      return kib;
  }
  FAIL("/proc/self/status has no " << name);
  return 0;
}

}  // namespace penstock::testing
