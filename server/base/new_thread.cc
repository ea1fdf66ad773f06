#include "server/base/new_thread.h"

#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {

absl::StatusOr<std::thread> NewThread(absl::string_view what, std::function<void()> run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the system gives no more threads; raise the limit of the user (ulimit -u), of the control "
        "group (pids.max, systemd's TasksMax) or of the system (kernel.threads-max), or use fewer "
        "workers: ",
        what, ": ", error.code().message()));
  }
}

}  // namespace penstock
