// How long users who may only attach may hold up others: a purse of time for each. While one holds
// up others it is spent as fast as time goes, else it fills again at a tenth of that. Whoever has
// spent it is waited for no longer, until a tenth of it is there again: so others wait for such a
// user for the length of a purse at first, and for a tenth of the time from then on, whatever that
// one does.
//
// Threads:  one at a time (the writer's mutex).
// Limits:   an entry for each user whose purse is not full.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace penstock::ring {

class GuestPurses {
 public:
  static constexpr uint64_t kDefaultNs = 10'000'000'000;

  // 0: such users are never waited for.
  void SetFull(uint64_t ns) { full_ns_ = ns; }
  uint64_t full_ns() const { return full_ns_; }

  // To be called a few times a second, with those who hold up others now.
  void Look(const std::set<uint32_t>& holding, uint64_t now_ns) {
    const uint64_t passed_ns = last_ns_ == 0 ? 0 : std::min(now_ns - last_ns_, kLongestLookNs);
    last_ns_ = now_ns;
    for (const uint32_t uid : holding) {
      Purse& purse = purses_[uid];
      purse.spent_ns = std::min(purse.spent_ns + passed_ns, full_ns_);
      purse.is_spent |= purse.spent_ns >= full_ns_;
    }
    for (auto& [uid, purse] : purses_) {
      if (holding.contains(uid)) continue;
      purse.spent_ns -= std::min(purse.spent_ns, passed_ns / 10);
      purse.is_spent &= purse.spent_ns > full_ns_ - full_ns_ / 10;
    }
    std::erase_if(purses_, [](const auto& entry) { return entry.second.spent_ns == 0; });
  }

  bool IsSpent(uint32_t uid) const {
    if (full_ns_ == 0) return true;
    const auto found = purses_.find(uid);
    return found != purses_.end() && found->second.is_spent;
  }
  // For how long others still wait for the user.
  uint64_t LeftNs(uint32_t uid) const {
    if (IsSpent(uid)) return 0;
    const auto found = purses_.find(uid);
    return full_ns_ - (found == purses_.end() ? 0 : std::min(found->second.spent_ns, full_ns_));
  }

 private:
  struct Purse {
    uint64_t spent_ns = 0;
    bool is_spent = false;
  };
  // What lies between two looks that were late is nobody's.
  static constexpr uint64_t kLongestLookNs = 1'000'000'000;

  uint64_t full_ns_ = kDefaultNs;
  uint64_t last_ns_ = 0;
  std::map<uint32_t, Purse> purses_;
};

}  // namespace penstock::ring
