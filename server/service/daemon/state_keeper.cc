#include "server/service/daemon/state_keeper.h"

#include <utility>

#include "absl/time/time.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr absl::Duration kLookTime = absl::Seconds(1);

}  // namespace

StateKeeper::StateKeeper(EventLoop& loop, const StateFolder& folder)
    : loop_(loop), folder_(folder) {
  timer_ = loop_.StartTimer(kLookTime, [this] { Look(); });
}

StateKeeper::~StateKeeper() { loop_.CancelTimer(timer_); }

void StateKeeper::Look() {
  if (!folder_.IsInPlace()) {
    const absl::Status status = folder_.PutBack();
    if (status.ok()) {
      spdlog::warn("the folder of the daemon's state was removed, and is there again: {}",
                   folder_.path());
      told_.clear();
    } else if (std::string text(status.message()); text != told_) {
      spdlog::error("the folder of the daemon's state was removed, and cannot be put back: {}",
                    text);
      told_ = std::move(text);
    }
  }
  timer_ = loop_.StartTimer(kLookTime, [this] { Look(); });
}

}  // namespace penstock
