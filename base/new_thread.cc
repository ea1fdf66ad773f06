#include "base/new_thread.h"

#include <pthread.h>

#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// As much of a name as Linux keeps.
constexpr size_t kNameBytes = 15;

}  // namespace

absl::StatusOr<std::thread> NewThread(absl::string_view what, std::function<void()> run) {
  try {
    return std::thread([name = std::string(what.substr(0, kNameBytes)), run = std::move(run)] {
      pthread_setname_np(pthread_self(), name.c_str());
      run();
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the system gives no more threads; raise the limit of the user (ulimit -u), of the control "
        "group (pids.max, systemd's TasksMax) or of the system (kernel.threads-max), or use fewer "
        "workers: ",
        what, ": ", error.code().message()));
  }
}

}  // namespace penstock
