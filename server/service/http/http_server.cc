#include "server/service/http/http_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr size_t kReadBytes = 4096;
// Of a body or a second request, which nobody looks at.
constexpr size_t kMaxUnreadBytes = 64 << 10;

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr char kTooLong[] =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: "
    "0\r\n\r\n";
constexpr char kTooMany[] =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Create(EventLoop& loop, int port,
                                                               const PipelineTable& table,
                                                               const Monitor& monitor,
                                                               const Access& access) {
  std::unique_ptr<HttpServer> server(new HttpServer(loop, table, monitor, access));
  if (!server->pool_.status().ok()) return server->pool_.status();
  auto listener =
      TcpListener::Create(loop, "http.port", absl::StrCat("127.0.0.1:", port),
                          [raw = server.get()](ring::Descriptor socket, const std::string&) {
                            raw->Welcome(std::move(socket));
                          });
  if (!listener.ok()) return listener.status();
  server->listener_ = *std::move(listener);
  return server;
}

HttpServer::~HttpServer() {
  while (!connections_.empty()) Drop(connections_.begin()->first);
}

void HttpServer::Welcome(ring::Descriptor socket) {
  if (connections_.size() >= kMaxConnections) Drop(connections_.begin()->first);
  const Ordinal ordinal = next_ordinal_++;
  // Edge-triggered, so that it is watched in the same way from its first byte to its last.
  const auto watch = loop_.Watch(socket.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                 [this, ordinal](uint32_t) { GoOn(ordinal); });
  if (!watch.ok()) return;
  Connection& connection = connections_[ordinal];
  connection.socket = std::move(socket);
  connection.watch = *watch;
  connection.timer = loop_.StartTimer(kTimeout, [this, ordinal] { Drop(ordinal); });
}

void HttpServer::Drop(Ordinal ordinal) {
  const auto found = connections_.find(ordinal);
  loop_.Unwatch(found->second.watch);
  loop_.CancelTimer(found->second.timer);
  connections_.erase(found);
}

void HttpServer::GoOn(Ordinal ordinal) {
  for (bool goes_on = true; goes_on;) {
    const auto found = connections_.find(ordinal);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    switch (connection.state) {
      case State::kAsking:
        goes_on = Listen(ordinal, connection);
        break;
      case State::kAnswering:
        return;
      case State::kTelling:
        goes_on = Tell(connection);
        break;
      case State::kEnding:
        goes_on = End(ordinal, connection);
        break;
    }
  }
}

bool HttpServer::Listen(Ordinal ordinal, Connection& connection) {
  char bytes[kReadBytes];
  const ssize_t count = recv(connection.socket.get(), bytes, sizeof(bytes), 0);
  if (count < 0 && errno == EINTR) return true;
  if (count < 0 && errno == EAGAIN) return false;
  if (count <= 0) {
    Drop(ordinal);
    return false;
  }
  std::string& said = connection.bytes;
  const size_t looked_at = said.size() - std::min(said.size(), kHeadEnd.size() - 1);
  said.append(bytes, static_cast<size_t>(count));
  if (said.find(kHeadEnd, looked_at) != said.npos) {
    AnswerLater(ordinal, std::move(said));
  } else if (said.size() > kMaxHeadBytes) {
    Answer(ordinal, kTooLong);
  }
  return true;
}

void HttpServer::AnswerLater(Ordinal ordinal, std::string request) {
  Connection& connection = connections_.at(ordinal);
  connection.state = State::kAnswering;
  // How long that takes is not the client's doing.
  loop_.CancelTimer(connection.timer);
  const bool taken = pool_.Run([this, ordinal, request = std::move(request)] {
    loop_.Post([this, ordinal, answer = answers_.Answer(request)]() mutable {
      // It may have had to make room for a newer one.
      if (connections_.contains(ordinal)) Answer(ordinal, std::move(answer));
    });
  });
  if (!taken) Answer(ordinal, kTooMany);
}

void HttpServer::Answer(Ordinal ordinal, std::string answer) {
  Connection& connection = connections_.at(ordinal);
  connection.bytes = std::move(answer);
  connection.state = State::kTelling;
  loop_.CancelTimer(connection.timer);
  connection.timer = loop_.StartTimer(kTimeout, [this, ordinal] { Drop(ordinal); });
  GoOn(ordinal);
}

bool HttpServer::Tell(Connection& connection) {
  const std::string_view left = std::string_view(connection.bytes).substr(connection.done);
  const ssize_t count = send(connection.socket.get(), left.data(), left.size(), MSG_NOSIGNAL);
  if (count < 0 && errno == EINTR) return true;
  if (count < 0 && errno == EAGAIN) return false;
  if (count >= 0) connection.done += static_cast<size_t>(count);
  if (count >= 0 && connection.done < connection.bytes.size()) return true;
  // To close a connection with unread bytes in it would be a reset, which overtakes the answer.
  shutdown(connection.socket.get(), SHUT_WR);
  connection.state = State::kEnding;
  connection.done = 0;
  return true;
}

bool HttpServer::End(Ordinal ordinal, Connection& connection) {
  char bytes[kReadBytes];
  const ssize_t count = recv(connection.socket.get(), bytes, sizeof(bytes), 0);
  if (count < 0 && errno == EINTR) return true;
  if (count < 0 && errno == EAGAIN) return false;
  if (count > 0) connection.done += static_cast<size_t>(count);
  if (count > 0 && connection.done <= kMaxUnreadBytes) return true;
  Drop(ordinal);
  return false;
}

}  // namespace penstock
