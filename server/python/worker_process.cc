#include "server/python/worker_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::python {
namespace {

constexpr size_t kMaxStackBytes = 4 << 10;

}  // namespace

absl::StatusOr<ring::Descriptor> WorkerProcess::Open(const std::string& configuration) {
  absl::StatusOr<std::unique_ptr<Desk>> desk = Desk::Create(configuration);
  if (!desk.ok()) return desk.status();
  desk_ = *std::move(desk);
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no socket for a Python worker process: ", std::strerror(errno), "; see ulimit -n"));
  }
  socket_ = ring::Descriptor(ends[0]);
  ring::Descriptor theirs(ends[1]);
  // It waits for messages.
  fcntl(theirs.get(), F_SETFL, fcntl(theirs.get(), F_GETFL) & ~O_NONBLOCK);
  stack_ = ring::Descriptor(memfd_create("penstock-stack", MFD_CLOEXEC));
  return theirs;
}

ssize_t WorkerProcess::ReceivePacket(int socket, msghdr* header) {
  ssize_t got = -1;
  int resets = 0;
  do {
    got = recvmsg(socket, header, MSG_DONTWAIT);
  } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && ++resets == 1)));
  return got;
}

bool WorkerProcess::Send(const Message& message) {
  while (true) {
    const ssize_t sent =
        send(socket_.get(), &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(sizeof(message))) return true;
    if (sent < 0 && errno == EINTR) continue;
    return false;
  }
}

WorkerProcess::Received WorkerProcess::Receive(Message* message, std::string* text) {
  char buffer[kMaxTextBytes];
  iovec parts[2] = {{message, sizeof(*message)}, {buffer, sizeof(buffer)}};
  // Descriptors that it might send are not taken.
  msghdr header = {};
  header.msg_iov = parts;
  header.msg_iovlen = 2;
  const ssize_t got = ReceivePacket(socket_.get(), &header);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::kNothing;
  if (got < static_cast<ssize_t>(sizeof(*message))) return Received::kClosed;
  text->assign(buffer, static_cast<size_t>(got) - sizeof(*message));
  return Received::kMessage;
}

std::string WorkerProcess::Stack() const {
  std::string text(kMaxStackBytes, '\0');
  const ssize_t got = pread(stack_.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

}  // namespace penstock::python
