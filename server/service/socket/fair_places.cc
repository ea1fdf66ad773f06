#include "server/service/socket/fair_places.h"

#include <algorithm>

namespace penstock {

void FairPlaces::Take(Place place, uid_t user) {
  places_[place] = {user, ++now_};
  by_user_[user][now_] = place;
}

void FairPlaces::Leave(Place place) {
  const auto found = places_.find(place);
  if (found == places_.end()) return;
  const auto user = by_user_.find(found->second.user);
  user->second.erase(found->second.moment);
  if (user->second.empty()) by_user_.erase(user);
  places_.erase(found);
}

void FairPlaces::Touch(Place place) {
  const auto found = places_.find(place);
  if (found == places_.end()) return;
  const uid_t user = found->second.user;
  Leave(place);
  Take(place, user);
}

size_t FairPlaces::HeldBy(uid_t user) const {
  const auto found = by_user_.find(user);
  return found == by_user_.end() ? 0 : found->second.size();
}

std::optional<FairPlaces::Place> FairPlaces::ToGiveUp(uid_t user) const {
  const auto most = std::max_element(
      by_user_.begin(), by_user_.end(),
      [](const auto& one, const auto& other) { return one.second.size() < other.second.size(); });
  if (most == by_user_.end() || most->second.size() < HeldBy(user) + 2) return std::nullopt;
  return most->second.begin()->second;
}

std::optional<FairPlaces::Place> FairPlaces::QuietestOf(uid_t user) const {
  const auto found = by_user_.find(user);
  if (found == by_user_.end()) return std::nullopt;
  return found->second.begin()->second;
}

}  // namespace penstock
