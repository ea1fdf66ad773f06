#include "server/helpers/helper_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/new_thread.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr int kLookMs = 100;

std::string NumberOf(const sockaddr_storage& from, socklen_t size) {
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&from), size, host, sizeof(host), port,
              sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
  return std::string(host) + ":" + port;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HelperServer>> HelperServer::Start(ring::Descriptor listening,
                                                                  ServedStream::Means means,
                                                                  int most_streams) {
  std::unique_ptr<HelperServer> server(
      new HelperServer(std::move(listening), std::move(means), most_streams));
  absl::StatusOr<std::thread> thread =
      NewThread("helps others", [one = server.get()] { one->Accept(); });
  if (!thread.ok()) return thread.status();
  server->accepting_ = *std::move(thread);
  return server;
}

HelperServer::~HelperServer() {
  stop_.store(true);
  if (accepting_.joinable()) accepting_.join();
  JoinThoseOver(/*all=*/true);
}

void HelperServer::JoinThoseOver(bool all) {
  for (auto one = served_.begin(); one != served_.end();) {
    if (!all && !(*one)->over.load()) {
      ++one;
      continue;
    }
    (*one)->thread.join();
    one = served_.erase(one);
  }
}

void HelperServer::Accept() {
  while (!stop_.load()) {
    pollfd waited{listening_.get(), POLLIN, 0};
    const int ready = poll(&waited, 1, kLookMs);
    JoinThoseOver(/*all=*/false);
    if (ready <= 0) continue;
    sockaddr_storage from{};
    socklen_t size = sizeof(from);
    ring::Descriptor socket(accept4(listening_.get(), reinterpret_cast<sockaddr*>(&from), &size,
                                    SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      Welcome(std::move(socket), NumberOf(from, size));
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      // No descriptors, or no memory.
      std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
    }
  }
}

void HelperServer::Welcome(ring::Descriptor socket, const std::string& from) {
  if (served_.size() >= static_cast<size_t>(most_streams_)) {
    spdlog::warn("does not help {}: {} streams of others are served already (serve.max_streams)",
                 from, most_streams_);
    return;
  }
  const int yes = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  auto served = std::make_unique<Served>();
  auto shared = std::make_shared<ring::Descriptor>(std::move(socket));
  absl::StatusOr<std::thread> thread =
      NewThread("helps one", [this, from, shared, one = served.get()] {
        const absl::Status end = ServedStream(means_, from, stop_).Serve(std::move(*shared));
        spdlog::info("helps {} no longer: {}", from, std::string(end.message()));
        one->over.store(true);
      });
  if (!thread.ok()) {
    spdlog::warn("does not help {}: {}", from, thread.status().ToString());
    return;
  }
  served->thread = *std::move(thread);
  served_.push_back(std::move(served));
}

}  // namespace penstock
