#include "server/engine/tasks/all_ended.h"

#include <utility>

#include "base/stop_flag.h"

namespace penstock {

AllEnded::~AllEnded() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (left_ > 0) Cancel(lock);
  ended_.wait(lock, [this] { return left_ == 0; });
}

Completion AllEnded::One() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++left_;
  return Completion(this);
}

absl::Status AllEnded::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, kLookTime, [this] { return left_ == 0; })) {
    if (!is_cancelled_ && IsStopped()) Cancel(lock);
  }
  cancels_.clear();
  return std::exchange(status_, absl::OkStatus());
}

void AllEnded::Cancel(std::unique_lock<std::mutex>& lock) {
  is_cancelled_ = true;
  const std::vector<std::function<void()>> cancels = std::exchange(cancels_, {});
  lock.unlock();
  for (const std::function<void()>& cancel : cancels) cancel();
  lock.lock();
}

void AllEnded::End(absl::Status status) {
  std::lock_guard<std::mutex> lock(mutex_);
  status_.Update(status);
  if (--left_ == 0) ended_.notify_all();
}

void AllEnded::OnCancel(std::function<void()> cancel) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!is_cancelled_) {
      cancels_.push_back(std::move(cancel));
      return;
    }
  }
  cancel();
}

}  // namespace penstock
