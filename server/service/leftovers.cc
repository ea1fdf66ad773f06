#include "server/service/leftovers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "spdlog/spdlog.h"

namespace penstock {

void Leftovers::Wait() {
  std::vector<Left> left;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    left = std::exchange(left_, {});
  }
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
  spdlog::warn("{}: a read hangs; what it uses is kept until it returns", left.what);
  std::lock_guard<std::mutex> lock(mutex_);
  left_.push_back(std::move(left));
}

void Leftovers::Sweep() {
  std::vector<Left> ended;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto first = std::stable_partition(left_.begin(), left_.end(),
                                             [](const Left& left) { return !left.has_ended(); });
    ended.assign(std::make_move_iterator(first), std::make_move_iterator(left_.end()));
    left_.erase(first, left_.end());
  }
  for (Left& left : ended) {
    left.end();
    spdlog::info("{}: the read that hung has returned; what it used is given back", left.what);
  }
}

size_t Leftovers::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return left_.size();
}

}  // namespace penstock
