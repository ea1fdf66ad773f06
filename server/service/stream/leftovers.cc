#include "server/service/stream/leftovers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/statusor.h"
#include "base/new_thread.h"
#include "spdlog/spdlog.h"

namespace penstock {

void Leftovers::Wait() {
  std::vector<Left> left;
  std::thread giving_back;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    left = std::exchange(left_, {});
    giving_back = std::move(thread_);
  }
  if (giving_back.joinable()) giving_back.join();
  for (Left& one : left) one.end();
}

void Leftovers::Take(const std::string& what, std::unique_ptr<Executor> executor,
                     std::vector<std::shared_ptr<void>> uses) {
  // A std::function is copied.
  const auto kept = std::make_shared<std::unique_ptr<Executor>>(std::move(executor));
  const auto used = std::make_shared<std::vector<std::shared_ptr<void>>>(std::move(uses));
  Add({what, [kept] { return (*kept)->HasEnded(); },
       [kept, used] {
         (*kept)->Stop();
         kept->reset();
         for (std::shared_ptr<void>& use : *used) use.reset();
       }});
}

void Leftovers::Take(const std::string& what, std::thread thread, std::function<bool()> has_ended) {
  const auto kept = std::make_shared<std::thread>(std::move(thread));
  Add({what, std::move(has_ended), [kept] { kept->join(); }});
}

void Leftovers::Add(Left left) {
  spdlog::warn(
      "{}: a read or a write hangs, or something is computed to its end; what it uses is kept "
      "until it returns",
      left.what);
  std::lock_guard<std::mutex> lock(mutex_);
  left_.push_back(std::move(left));
}

void Leftovers::Sweep() {
  const auto ended = std::make_shared<std::vector<Left>>();
  std::unique_lock<std::mutex> lock(mutex_);
  if (giving_back_ > 0) return;
  if (thread_.joinable()) thread_.join();
  const auto first = std::stable_partition(left_.begin(), left_.end(),
                                           [](const Left& left) { return !left.has_ended(); });
  ended->assign(std::make_move_iterator(first), std::make_move_iterator(left_.end()));
  left_.erase(first, left_.end());
  if (ended->empty()) return;
  giving_back_ = ended->size();
  absl::StatusOr<std::thread> thread =
      NewThread("giving back", [this, ended] { GiveBack(*ended); });
  if (thread.ok()) {
    thread_ = *std::move(thread);
    return;
  }
  lock.unlock();
  GiveBack(*ended);
}

void Leftovers::GiveBack(std::vector<Left>& ended) {
  for (Left& left : ended) {
    left.end();
    spdlog::info("{}: what was left behind has returned; what it used is given back", left.what);
    left = {};
    std::lock_guard<std::mutex> lock(mutex_);
    --giving_back_;
  }
}

size_t Leftovers::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return left_.size() + giving_back_;
}

}  // namespace penstock
