#include "server/service/socket/listener.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ring/attach.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

// How long accepting rests when not even the spare descriptor helps.
constexpr absl::Duration kPause = absl::Milliseconds(100);

ring::Descriptor OpenSpare() { return ring::Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

Listener::Listener(EventLoop& loop, int listening, Access& access,
                   std::function<void(Visitor)> on_visitor)
    : loop_(loop),
      listening_(listening),
      access_(access),
      on_visitor_(std::move(on_visitor)),
      spare_(OpenSpare()) {}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Create(
    EventLoop& loop, int listening, Access& access, std::function<void(Visitor)> on_visitor) {
  std::unique_ptr<Listener> listener(new Listener(loop, listening, access, std::move(on_visitor)));
  absl::Status status = listener->Arm();
  if (!status.ok()) return status;
  return listener;
}

Listener::~Listener() {
  loop_.Unwatch(watch_);
  loop_.CancelTimer(pause_);
}

absl::Status Listener::Arm() {
  auto watch = loop_.Watch(listening_, EPOLLIN, [this](uint32_t) { AcceptAll(); });
  if (!watch.ok()) return watch.status();
  watch_ = *watch;
  return absl::OkStatus();
}

void Listener::AcceptAll() {
  // Another thread may have had its place when it was to be opened again.
  if (!spare_) spare_ = OpenSpare();
  // A bounded number a turn, so that a flood of connections does not starve the other descriptors.
  for (int i = 0; i < 16; ++i) {
    ring::Descriptor socket(accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      Admit(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      RefuseOne();
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;  // EAGAIN: none is left
    }
  }
}

bool Listener::CountRefusal() {
  ++refused_;
  return (refused_ & (refused_ - 1)) == 0;
}

void Listener::Admit(ring::Descriptor socket) {
  ring::Peer peer;
  const ring::Status status = ring::CheckPeer(socket.get(), &peer);
  ring::Descriptor pidfd(peer.pidfd);
  if (!status.ok()) return;
  Identity who = IdentityOf(socket.get(), peer.uid, peer.gid);
  who.pid = peer.pid;
  if (!access_.MayConnect(who)) {
    access_.CountNoRule();
    if (CountRefusal()) {
      spdlog::warn(
          "refused a connection of uid {}: neither in allowed_uids nor in an access_rule ({} "
          "refused so far)",
          peer.uid, refused_);
    }
    // A consumer reads it, whether or not its request has come; to the control plane it is a
    // connection that ends.
    ring::SendReply(
        socket.get(),
        {ring::Code::kPermissionDenied, absl::StrCat("penstockd refuses the connection: user ",
                                                     peer.uid, " is not in its allowed_uids")},
        nullptr);
    return;
  }
  if (const absl::Status status = access_.CountRequest(who); !status.ok()) {
    if (CountRefusal()) {
      spdlog::warn("refused a connection of uid {}: {} ({} refused so far)", peer.uid,
                   std::string(status.message()), refused_);
    }
    return;
  }
  on_visitor_(Visitor{std::move(socket), peer.pid, std::move(who), std::move(pidfd)});
}

void Listener::RefuseOne() {
  spare_ = ring::Descriptor();
  ring::Descriptor refused(accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC));
  const bool accepted = static_cast<bool>(refused);
  access_.CountNoDescriptors();
  if (CountRefusal()) {
    spdlog::warn("refused a connection: no free descriptors ({} refused so far)", refused_);
  }
  refused = ring::Descriptor();
  spare_ = OpenSpare();
  if (accepted) return;
  loop_.Unwatch(watch_);
  watch_ = 0;
  pause_ = loop_.StartTimer(kPause, [this] {
    pause_ = 0;
    if (!Arm().ok()) RefuseOne();
  });
}

}  // namespace penstock
