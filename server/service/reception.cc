#include "server/service/reception.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace {

// RFC 9113, section 3.4.
constexpr absl::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

}  // namespace

Reception::~Reception() {
  while (!waiting_.empty()) Release(waiting_.begin()->first);
}

void Reception::Welcome(Visitor visitor) {
  if (waiting_.size() >= kMaxWaiting) Release(waiting_.begin()->first);
  const Ordinal ordinal = next_ordinal_++;
  const int fd = visitor.socket.get();
  // Edge-triggered: bytes that are peeked at stay readable, and half a request must not keep the
  // loop busy.
  const auto watch = loop_.Watch(fd, EPOLLIN | EPOLLRDHUP | EPOLLET,
                                 [this, ordinal](uint32_t) { Listen(ordinal); });
  if (!watch.ok()) return;
  const EventLoop::Id timer = loop_.StartTimer(timeout_, [this, ordinal] { Release(ordinal); });
  waiting_[ordinal] = {std::move(visitor), *watch, timer};
}

Visitor Reception::Release(Ordinal ordinal) {
  const auto found = waiting_.find(ordinal);
  loop_.Unwatch(found->second.watch);
  loop_.CancelTimer(found->second.timer);
  Visitor visitor = std::move(found->second.visitor);
  waiting_.erase(found);
  return visitor;
}

void Reception::Listen(Ordinal ordinal) {
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
  if (absl::StartsWith(kHttp2Preface, said)) return;

  ring::ParsedRequest request;
  ring::Status error;
  switch (ring::ParseRequest(bytes, size, &request, &error)) {
    case ring::ParseState::kNeedMore:
      return;
    case ring::ParseState::kRequest: {
      Visitor visitor = Release(ordinal);
      recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
      destinations_.attach(std::move(visitor), request);
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
