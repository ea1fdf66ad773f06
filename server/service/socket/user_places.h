// Places of one kind that users share, each of which somebody holds for as long as he likes: as
// MayTakePlace() has it.
//
// Threads:  safe from any thread.
// Cost:     a lock and a look-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "server/service/socket/fair_places.h"

namespace penstock {

class UserPlaces {
 public:
  // False when `user` may have no further one of `limit` in all. What was taken is given back.
  bool Take(uint64_t user, size_t limit) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = of_user_.find(user);
    if (!MayTakePlace(taken_, found == of_user_.end() ? 0 : found->second, limit)) return false;
    ++taken_;
    ++of_user_[user];
    return true;
  }
  void GiveBack(uint64_t user) {
    std::lock_guard<std::mutex> lock(mutex_);
    --taken_;
    const auto found = of_user_.find(user);
    if (--found->second == 0) of_user_.erase(found);
  }

  size_t HeldBy(uint64_t user) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = of_user_.find(user);
    return found == of_user_.end() ? 0 : found->second;
  }

 private:
  mutable std::mutex mutex_;
  size_t taken_ = 0;                    // under mutex_
  std::map<uint64_t, size_t> of_user_;  // under mutex_; nobody without a place
};

}  // namespace penstock
