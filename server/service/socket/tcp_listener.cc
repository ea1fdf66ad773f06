#include "server/service/socket/tcp_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "server/service/socket/tcp_address.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr size_t kMaxPemBytes = 1 << 20;
constexpr int kConnectionsATurn = 16;
constexpr int kBacklog = 128;
constexpr absl::Duration kPause = absl::Seconds(1);

std::string NumberOf(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr, text,
              sizeof(text));
  } else {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr, text,
              sizeof(text));
  }
  return text;
}

absl::StatusOr<std::string> ReadPem(const char* field, const std::string& path, bool is_secret) {
  const ring::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return FileError(errno, absl::StrCat(field, ": cannot open ", path));
  struct stat about;
  if (fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(field, ": not a regular file: ", path));
  if (is_secret && (about.st_mode & S_IRWXO) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(field, ": everybody may read it; chmod 600 ", path));
  }
  std::string text(kMaxPemBytes + 1, '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(file.get(), text.data() + have, text.size() - have);
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat(field, ": cannot read ", path));
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  if (have > kMaxPemBytes || text.find("-----BEGIN ") == text.npos)
    return absl::InvalidArgumentError(absl::StrCat(field, ": not a PEM file: ", path));
  return text;
}

}  // namespace

absl::StatusOr<Certificates> ReadCertificates(const v1::TcpOptions& options) {
  Certificates certificates;
  const struct {
    const char* field;
    const std::string& path;
    std::string* out;
  } files[] = {
      {"tcp.certificate", options.certificate(), &certificates.certificate},
      {"tcp.key", options.key(), &certificates.key},
      {"tcp.client_authorities", options.client_authorities(), &certificates.client_authorities}};
  for (const auto& file : files) {
    auto text = ReadPem(file.field, file.path, /*is_secret=*/file.out == &certificates.key);
    if (!text.ok()) return text.status();
    *file.out = *std::move(text);
  }
  return certificates;
}

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Create(EventLoop& loop,
                                                                 absl::string_view field,
                                                                 const std::string& address,
                                                                 OnConnection on_connection) {
  const absl::StatusOr<TcpAddress> parsed = ParseTcpAddress(address);
  if (!parsed.ok()) return parsed.status();
  ring::Descriptor socket(
      ::socket(parsed->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return absl::ErrnoToStatus(errno, absl::StrCat(field, ": cannot make a socket"));
  const int yes = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&parsed->storage), parsed->size) != 0 ||
      listen(socket.get(), kBacklog) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(field, ": cannot listen at ", address));
  }
  std::unique_ptr<TcpListener> listener(
      new TcpListener(loop, std::move(socket), std::move(on_connection)));
  absl::Status status = listener->Arm();
  if (!status.ok()) return status;
  return listener;
}

TcpListener::~TcpListener() {
  loop_.Unwatch(watch_);
  loop_.CancelTimer(pause_);
}

absl::Status TcpListener::Arm() {
  auto watch = loop_.Watch(listening_.get(), EPOLLIN, [this](uint32_t) { AcceptSome(); });
  if (!watch.ok()) return watch.status();
  watch_ = *watch;
  return absl::OkStatus();
}

void TcpListener::AcceptSome() {
  for (int i = 0; i < kConnectionsATurn; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof(from);
    ring::Descriptor socket(accept4(listening_.get(), reinterpret_cast<sockaddr*>(&from), &size,
                                    SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      // One whose machine has gone away is noticed within minutes.
      const int yes = 1, idle_s = 60, between_s = 20, times = 3;
      setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
      setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
      setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof(between_s));
      setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
      setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      on_connection_(std::move(socket), NumberOf(from));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      loop_.Unwatch(watch_);
      watch_ = 0;
      pause_ = loop_.StartTimer(kPause, [this] {
        pause_ = 0;
        if (const absl::Status status = Arm(); !status.ok())
          spdlog::error("no further connections by TCP: {}", status.ToString());
      });
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;  // EAGAIN: none is left
    }
  }
}

}  // namespace penstock
