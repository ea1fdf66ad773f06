#include "io/credentials/credential_keeper.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

// How long nobody looks whether they are wanted still.
constexpr std::chrono::milliseconds kLookTime(50);

}  // namespace

CredentialKeeper::CredentialKeeper(CredentialSource source, Clock clock)
    : source_(std::move(source)),
      clock_(clock ? std::move(clock) : [] { return absl::ToUnixSeconds(absl::Now()); }) {}

CredentialKeeper::~CredentialKeeper() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  // Sources look at it: the network and programs are not waited for.
  stop_.store(true, std::memory_order_relaxed);
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool CredentialKeeper::IsUsable(int64_t now_s) const {
  return current_ != nullptr && (current_->expires_s == 0 || now_s < current_->expires_s);
}

bool CredentialKeeper::IsFresh(int64_t now_s) const {
  return current_ != nullptr && (current_->expires_s == 0 || now_s < current_->expires_s - kAheadS);
}

void CredentialKeeper::Begin() {
  is_wanted_ = true;
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wake_.notify_all();
}

std::optional<CredentialKeeper::Found> CredentialKeeper::Ask(std::function<void()> ready) {
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t now_s = clock_();
  const bool may_try = error_.ok() || now_s - failed_s_ >= kAgainS;
  if (!IsFresh(now_s) && may_try && !is_wanted_) Begin();
  // Those that end soon are good until others have come.
  if (IsUsable(now_s)) return current_;
  if (!is_wanted_) return error_;
  waiting_.push_back(std::move(ready));
  return std::nullopt;
}

CredentialKeeper::Found CredentialKeeper::Wait() {
  while (true) {
    struct Bell {
      std::mutex mutex;
      std::condition_variable rung;
      bool has_rung = false;
    };
    const auto bell = std::make_shared<Bell>();
    std::optional<Found> found = Ask([bell] {
      std::lock_guard<std::mutex> lock(bell->mutex);
      bell->has_rung = true;
      bell->rung.notify_all();
    });
    if (found) return *std::move(found);
    std::unique_lock<std::mutex> lock(bell->mutex);
    while (!bell->rung.wait_for(lock, kLookTime, [&bell] { return bell->has_rung; }))
      if (IsStopped()) return absl::CancelledError("credentials are not waited for any more");
  }
}

void CredentialKeeper::Refused(const std::shared_ptr<const Credentials>& credentials) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (credentials == nullptr || current_ != credentials || credentials->is_anonymous()) return;
  current_ = nullptr;
  if (!is_wanted_) Begin();
}

void CredentialKeeper::Run() {
  const StopFlag::Scope scope(&stop_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return is_wanted_ || is_over_; });
    if (is_over_) break;
    lock.unlock();
    absl::StatusOr<Credentials> found = source_();
    lock.lock();
    const int64_t now_s = clock_();
    if (found.ok() && found->expires_s != 0 && found->expires_s <= now_s) {
      found = absl::DeadlineExceededError(
          absl::StrCat("credentials of ", found->source, " have expired already"));
    }
    error_ = found.status();
    if (found.ok()) {
      current_ = std::make_shared<const Credentials>(*std::move(found));
    } else {
      failed_s_ = now_s;
    }
    is_wanted_ = false;
    std::vector<std::function<void()>> waiting = std::exchange(waiting_, {});
    lock.unlock();
    for (const auto& ready : waiting) ready();
    lock.lock();
  }
  // Who waits is told that nothing comes any more.
  error_ = absl::CancelledError("credentials are not fetched any more");
  is_wanted_ = false;
  std::vector<std::function<void()>> waiting = std::exchange(waiting_, {});
  lock.unlock();
  for (const auto& ready : waiting) ready();
}

}  // namespace penstock
