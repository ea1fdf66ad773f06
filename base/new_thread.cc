#include "base/new_thread.h"

#include <pthread.h>
#include <signal.h>

#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// As much of a name as Linux keeps.
constexpr size_t kNameBytes = 15;

// Where a signal's handler runs that comes as the thread's own stack is used up.
class AlternateStack {
 public:
  AlternateStack() : memory_(std::make_unique<char[]>(kBytes)) {
    stack_t stack{};
    stack.ss_sp = memory_.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, &before_);
  }
  ~AlternateStack() { sigaltstack(&before_, nullptr); }

 private:
  static constexpr size_t kBytes = 64 << 10;
  std::unique_ptr<char[]> memory_;
  stack_t before_{};
};

}  // namespace

absl::StatusOr<std::thread> NewThread(absl::string_view what, std::function<void()> run) {
  try {
    return std::thread([name = std::string(what.substr(0, kNameBytes)), run = std::move(run)] {
      pthread_setname_np(pthread_self(), name.c_str());
      const AlternateStack stack;
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
