#include "server/service/socket/socket_keeper.h"

#include <utility>

#include "absl/time/time.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr absl::Duration kLookTime = absl::Seconds(1);

}  // namespace

SocketKeeper::SocketKeeper(EventLoop& loop, SocketFile& file, Access& access,
                           std::function<void(Visitor)> on_visitor)
    : loop_(loop), file_(file), access_(access), on_visitor_(std::move(on_visitor)) {}

absl::StatusOr<std::unique_ptr<SocketKeeper>> SocketKeeper::Create(
    EventLoop& loop, SocketFile& file, Access& access, std::function<void(Visitor)> on_visitor) {
  std::unique_ptr<SocketKeeper> keeper(new SocketKeeper(loop, file, access, std::move(on_visitor)));
  if (absl::Status status = keeper->Listen(); !status.ok()) return status;
  keeper->timer_ = loop.StartTimer(kLookTime, [keeper = keeper.get()] { keeper->Look(); });
  return keeper;
}

SocketKeeper::~SocketKeeper() { loop_.CancelTimer(timer_); }

absl::Status SocketKeeper::Listen() {
  auto listener = Listener::Create(loop_, file_.fd(), access_, on_visitor_);
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  return absl::OkStatus();
}

void SocketKeeper::Look() {
  if (!file_.IsInPlace()) {
    // Its descriptor goes with the file's.
    listener_.reset();
    absl::Status status = file_.PutBack();
    // Whoever has connected to what is no longer at the path is let in all the same.
    if (absl::Status listening = Listen(); status.ok()) status = std::move(listening);
    if (status.ok()) {
      spdlog::warn("the socket was removed, and is there again: {}", file_.path());
      told_.clear();
    } else if (std::string text(status.message()); text != told_) {
      spdlog::error("the socket was removed, and cannot be put back: {}", text);
      told_ = std::move(text);
    }
  }
  timer_ = loop_.StartTimer(kLookTime, [this] { Look(); });
}

}  // namespace penstock
