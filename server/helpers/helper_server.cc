#include "server/helpers/helper_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
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
  for (const auto& one : served_) one->stop.store(true);
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

absl::Status HelperServer::Enter(Served& one) {
  if (helped_.fetch_add(1) >= most_streams_) {
    helped_.fetch_sub(1);
    return absl::ResourceExhaustedError(
        absl::StrCat("it helps ", most_streams_, " streams already (serve.max_streams)"));
  }
  one.is_helped.store(true);
  return absl::OkStatus();
}

void HelperServer::EndOldestOfTooManyStrangers() {
  int strangers = 0;
  Served* oldest = nullptr;
  for (const auto& one : served_) {
    if (one->is_helped.load() || one->stop.load() || one->over.load()) continue;
    ++strangers;
    if (oldest == nullptr) oldest = one.get();
  }
  if (strangers >= kMostStrangers) oldest->stop.store(true);
}

void HelperServer::Welcome(ring::Descriptor socket, const std::string& from) {
  EndOldestOfTooManyStrangers();
  const int yes = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  auto served = std::make_unique<Served>();
  auto shared = std::make_shared<ring::Descriptor>(std::move(socket));
  absl::StatusOr<std::thread> thread =
      NewThread("helps one", [this, from, shared, one = served.get()] {
        ServedStream stream(means_, from, one->stop, [this, one] { return Enter(*one); });
        const absl::Status end = stream.Serve(std::move(*shared));
        spdlog::info("helps {} no longer: {}", from, std::string(end.message()));
        if (one->is_helped.load()) helped_.fetch_sub(1);
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
