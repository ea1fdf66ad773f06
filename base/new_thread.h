// A thread, or the error that there is none: std::thread throws where the system has no more of
// them, which would end the process.
//
// Threads:  safe from any thread.
// Owns:     nothing; the caller joins what it gets.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {

// `what` is the thread's name in `top -H` and profilers, of which Linux keeps 15 bytes, and is told
// when it fails: ResourceExhausted, with what can be done.
absl::StatusOr<std::thread> NewThread(absl::string_view what, std::function<void()> run);

}  // namespace penstock
