#include "server/service/attach/reception.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace {

// RFC 9113, section 3.4.
constexpr absl::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Reads a whole request that was peeked at, for the descriptor that came with it; further ones are
// closed.
ring::Descriptor TakeRequest(int fd) {
  constexpr size_t kMaxDescriptors = 4;  // what does not fit is closed by the kernel
  uint8_t bytes[sizeof(ring::AttachRequest)];
  iovec part = {bytes, sizeof bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ring::Descriptor file;
  // A request in pieces is read piece by piece: a read ends where descriptors were sent.
  while (part.iov_len > 0) {
    message.msg_controllen = sizeof control;
    const ssize_t count = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count <= 0) break;
    part.iov_base = static_cast<uint8_t*>(part.iov_base) + count;
    part.iov_len -= count;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      const size_t received = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < received; ++i) {
        int received_fd;
        std::memcpy(&received_fd, CMSG_DATA(head) + i * sizeof(int), sizeof received_fd);
        ring::Descriptor owned(received_fd);
        if (!file) file = std::move(owned);
      }
    }
  }
  return file;
}

}  // namespace

Reception::~Reception() {
  while (!waiting_.empty()) Release(waiting_.begin()->first);
}

void Reception::Welcome(Visitor visitor) {
  MakeRoomFor(visitor.who.uid);
  const Ordinal ordinal = next_ordinal_++;
  const int fd = visitor.socket.get();
  // Edge-triggered: bytes that are peeked at stay readable, and half a request must not keep the
  // loop busy.
  const auto watch =
      loop_.Watch(fd, EPOLLIN | EPOLLRDHUP | EPOLLET, [this, ordinal](uint32_t events) {
        Listen(ordinal, (events & (EPOLLRDHUP | EPOLLHUP)) != 0);
      });
  if (!watch.ok()) return;
  const EventLoop::Id timer = loop_.StartTimer(timeout_(), [this, ordinal] { Release(ordinal); });
  places_.Take(ordinal, visitor.who.uid);
  waiting_[ordinal] = {std::move(visitor), *watch, timer};
}

void Reception::MakeRoomFor(uid_t user) {
  if (waiting_.size() < kMaxWaiting) return;
  std::optional<Ordinal> leaving = places_.ToGiveUp(user);
  if (!leaving) leaving = places_.QuietestOf(user);
  Release(leaving.value_or(waiting_.begin()->first));
  destinations_.no_place();
}

Visitor Reception::Release(Ordinal ordinal) {
  const auto found = waiting_.find(ordinal);
  loop_.Unwatch(found->second.watch);
  loop_.CancelTimer(found->second.timer);
  Visitor visitor = std::move(found->second.visitor);
  waiting_.erase(found);
  places_.Leave(ordinal);
  return visitor;
}

void Reception::Listen(Ordinal ordinal, bool hung_up) {
  const int fd = waiting_.at(ordinal).visitor.socket.get();
  uint8_t bytes[sizeof(ring::AttachRequest)];
  const ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    Release(ordinal);
    return;
  }
  const absl::string_view said(reinterpret_cast<const char*>(bytes), size);
  if (absl::StartsWith(said, kHttp2Preface)) {
    destinations_.control(Release(ordinal));
    return;
  }
  if (absl::StartsWith(kHttp2Preface, said)) {
    if (hung_up) Release(ordinal);
    return;
  }

  ring::ParsedRequest request;
  ring::Status error;
  switch (ring::ParseRequest(bytes, size, &request, &error)) {
    case ring::ParseState::kNeedMore:
      if (hung_up) Release(ordinal);
      return;
    case ring::ParseState::kRequest: {
      Visitor visitor = Release(ordinal);
      ring::Descriptor file = TakeRequest(fd);
      if (request.operation == ring::Operation::kProbe) {
        ring::SendAnswer(fd, {}, -1);
        return;
      }
      if (request.operation == ring::Operation::kAttach) {
        destinations_.attach(std::move(visitor), request);
      } else {
        destinations_.spec(std::move(visitor), request, std::move(file));
      }
      return;
    }
    case ring::ParseState::kRefused: {
      const Visitor visitor = Release(ordinal);
      // Unread bytes would turn the close into a reset that overtakes the reply.
      recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
      ring::SendReply(fd, error, nullptr);
      return;
    }
  }
}

}  // namespace penstock
