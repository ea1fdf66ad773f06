// Programs that are installed together with this one.
//
// Threads:  safe from any thread.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace penstock::ctl {

// The path of the program `name` in the folder of this one; the bare name, for PATH, where there is
// none.
std::string ProgramBeside(const std::string& name);

// What to say where the system has not started it; `error` is an errno.
absl::Status CannotStart(const std::string& program, int error);

}  // namespace penstock::ctl
