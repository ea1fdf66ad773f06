#include "server/service/daemon/service_manager.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr int kFirstListenFd = 3;

std::string TakeVariable(const char* name) {
  const char* const value = getenv(name);
  const std::string text = value == nullptr ? "" : value;
  unsetenv(name);
  return text;
}

// Whether a variable that says whom it is meant for means this process.
bool IsMeant(const std::string& pid_text) {
  int64_t pid = 0;
  return pid_text.empty() || (absl::SimpleAtoi(pid_text, &pid) && pid == getpid());
}

int SocketOption(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

}  // namespace

absl::StatusOr<ServiceManager> ServiceManager::Create() {
  ServiceManager manager;
  manager.notify_path_ = TakeVariable("NOTIFY_SOCKET");
  if (!manager.notify_path_.empty()) {
    manager.notify_ =
        ring::Descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!manager.notify_) {
      return absl::ErrnoToStatus(errno, "cannot make the socket that tells the service manager");
    }
  }

  const std::string watchdog_pid = TakeVariable("WATCHDOG_PID");
  int64_t watchdog_us = 0;
  if (absl::SimpleAtoi(TakeVariable("WATCHDOG_USEC"), &watchdog_us) && watchdog_us > 0 &&
      IsMeant(watchdog_pid)) {
    manager.watchdog_ = absl::Microseconds(watchdog_us);
  }

  const std::string listen_pid = TakeVariable("LISTEN_PID");
  const std::string listen_fds = TakeVariable("LISTEN_FDS");
  TakeVariable("LISTEN_FDNAMES");
  int count = 0;
  if (listen_fds.empty() || !IsMeant(listen_pid) || !absl::SimpleAtoi(listen_fds, &count))
    return manager;
  if (count != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected one socket from the service manager, found LISTEN_FDS=", count));
  }
  if (SocketOption(kFirstListenFd, SO_DOMAIN) != AF_UNIX ||
      SocketOption(kFirstListenFd, SO_TYPE) != SOCK_STREAM ||
      SocketOption(kFirstListenFd, SO_ACCEPTCONN) != 1) {
    return absl::FailedPreconditionError(
        "the service manager's socket is no listening Unix stream socket (ListenStream=PATH)");
  }
  manager.socket_ = ring::Descriptor(kFirstListenFd);
  fcntl(kFirstListenFd, F_SETFD, FD_CLOEXEC);
  fcntl(kFirstListenFd, F_SETFL, fcntl(kFirstListenFd, F_GETFL) | O_NONBLOCK);
  return manager;
}

void ServiceManager::Tell(std::string_view state) const {
  if (!notify_) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t size = std::min(notify_path_.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, notify_path_.data(), size);
  // "@" stands for the zero byte of an abstract name.
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  sendto(notify_.get(), state.data(), state.size(), MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&address), offsetof(sockaddr_un, sun_path) + size);
}

}  // namespace penstock
