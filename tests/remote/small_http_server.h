// A server of HTTP on the loopback, one request a connection, whose answers are the test's own
// bytes: deviant ones, too.
//
// Threads:  one for each connection; the handler is called from all of them.
#pragma once

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock::test {

struct SmallRequest {
  std::string method;
  std::string target;  // path and query, as sent
  std::string head;    // in lower case
  std::string body;

  // "" where there is none.
  std::string Header(const std::string& name) const {
    const size_t begin = head.find("\r\n" + name + ": ");
    if (begin == std::string::npos) return "";
    const size_t value = begin + name.size() + 4;
    return head.substr(value, head.find("\r\n", value) - value);
  }
};

// What an answer ends with whose connection is to be reset behind it, not closed.
inline constexpr char kReset[] = "\1reset";

class SmallHttpServer {
 public:
  // All bytes of the answer; the connection is closed behind them.
  using Handler = std::function<std::string(const SmallRequest& request)>;

  explicit SmallHttpServer(Handler handler) : handler_(std::move(handler)) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (bind(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd_, 128) != 0)
      abort();
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Accept(); });
  }
  ~SmallHttpServer() {
    is_over_.store(true);
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
    for (std::thread& thread : threads_) thread.join();
  }

  std::string url() const { return absl::StrCat("http://127.0.0.1:", port_); }

 private:
  void Accept() {
    while (!is_over_.load()) {
      const int connection = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      threads_.emplace_back([this, connection] {
        Serve(connection);
        close(connection);
      });
    }
  }

  void Serve(int connection) {
    std::string got;
    size_t end = std::string::npos;
    size_t body_bytes = 0;
    SmallRequest request;
    while (end == std::string::npos || got.size() < end + 4 + body_bytes) {
      char buffer[4096];
      const ssize_t bytes = recv(connection, buffer, sizeof(buffer), 0);
      if (bytes <= 0) return;
      got.append(buffer, static_cast<size_t>(bytes));
      if (end != std::string::npos || (end = got.find("\r\n\r\n")) == std::string::npos) continue;
      request.head = absl::AsciiStrToLower(got.substr(0, end + 2));
      const std::string length = request.Header("content-length");
      body_bytes = length.empty() ? 0 : std::stoul(length);
    }
    const size_t space = got.find(' ');
    request.method = got.substr(0, space);
    request.target = got.substr(space + 1, got.find(' ', space + 1) - space - 1);
    request.body = got.substr(end + 4);
    std::string answer = handler_(request);
    const bool is_reset = absl::EndsWith(answer, kReset);
    if (is_reset) answer.resize(answer.size() - sizeof(kReset) + 1);
    size_t sent = 0;
    while (sent < answer.size()) {
      const ssize_t bytes =
          send(connection, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
      if (bytes <= 0) return;
      sent += static_cast<size_t>(bytes);
    }
    if (is_reset) {
      // What has been sent is there before the reset is.
      int left = 0;
      while (ioctl(connection, SIOCOUTQ, &left) == 0 && left > 0) std::this_thread::yield();
      const linger at_once{1, 0};
      setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      return;
    }
    shutdown(connection, SHUT_WR);
  }

  const Handler handler_;
  int fd_ = -1;
  int port_ = 0;
  std::atomic<bool> is_over_{false};
  std::vector<std::thread> threads_;  // the accepting thread's, then the destructor's
  std::thread thread_;
};

inline std::string Answer(const std::string& status, const std::string& headers,
                          const std::string& body) {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nConnection: close\r\nContent-Length: ", body.size(),
                      "\r\n", headers, "\r\n", body);
}

// As a sound server answers for an object.
inline std::string AnswerRange(const SmallRequest& request, const std::string& object,
                               const std::string& etag) {
  const std::string tag = absl::StrCat("ETag: ", etag, "\r\n");
  const std::string wanted = request.Header("if-match");
  if (!wanted.empty() && wanted != absl::AsciiStrToLower(etag))
    return Answer("412 Precondition Failed", "", "");
  if (request.method == "HEAD") {
    return absl::StrCat("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ", object.size(),
                        "\r\n", tag, "\r\n");
  }
  const std::string range = request.Header("range");
  if (range.empty()) return Answer("200 OK", tag, object);
  const size_t first = std::stoul(range.substr(6));
  const size_t last =
      std::min<size_t>(std::stoul(range.substr(range.find('-') + 1)), object.size() - 1);
  if (first >= object.size()) {
    return Answer("416 Range Not Satisfiable",
                  absl::StrCat("Content-Range: bytes */", object.size(), "\r\n"), "");
  }
  return Answer(
      "206 Partial Content",
      absl::StrCat(tag, "Content-Range: bytes ", first, "-", last, "/", object.size(), "\r\n"),
      object.substr(first, last - first + 1));
}

}  // namespace penstock::test
