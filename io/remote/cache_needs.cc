#include "io/remote/cache_needs.h"

#include <algorithm>
#include <utility>

namespace penstock {

void CacheNeeds::Need(Reader reader, const std::vector<Key>& keys, int64_t now_s) {
  std::lock_guard<std::mutex> lock(mutex_);
  State& state = readers_[reader];
  ++state.plans;
  state.used_s = now_s;
  // What is there already is marked with the first read.
  state.renewed_s = 0;
  for (const Key key : keys) ++state.objects[key].plans;
}

std::vector<CacheNeeds::Key> CacheNeeds::NoMore(Reader reader, const std::vector<Key>& keys) {
  std::vector<Key> free;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = readers_.find(reader);
  if (found == readers_.end()) return free;
  State& state = found->second;
  const bool has_read = state.has_read;
  if (--state.plans == 0) {
    for (const auto& [key, object] : state.objects) free.push_back(key);
    readers_.erase(found);
  } else {
    for (const Key key : keys) {
      const auto object = state.objects.find(key);
      if (object == state.objects.end() || --object->second.plans > 0) continue;
      state.objects.erase(object);
      free.push_back(key);
    }
  }
  if (!has_read) return {};
  std::erase_if(free, [this](Key key) {
    return std::any_of(readers_.begin(), readers_.end(),
                       [key](const auto& one) { return one.second.objects.contains(key); });
  });
  return free;
}

std::vector<CacheNeeds::Key> CacheNeeds::Used(Reader reader, Key key, int64_t now_s) {
  std::vector<Key> marked;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = readers_.find(reader);
  if (found == readers_.end()) return marked;
  State& state = found->second;
  state.used_s = now_s;
  state.has_read = true;
  state.objects.try_emplace(key);
  if (now_s - state.renewed_s < kRenewS) return marked;
  state.renewed_s = now_s;
  marked.reserve(state.objects.size());
  for (const auto& [needed, object] : state.objects) marked.push_back(needed);
  return marked;
}

void CacheNeeds::Passed(Reader reader, Key key) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = readers_.find(reader);
  if (found == readers_.end()) return;
  const auto object = found->second.objects.find(key);
  if (object == found->second.objects.end()) return;
  object->second.passed_at = ++passed_;
  found->second.passes = std::max(found->second.passes, ++object->second.passes);
}

CacheNeeds::Standing CacheNeeds::Of(Key key, int64_t now_s) const {
  Standing standing;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [reader, state] : readers_) {
    const auto object = state.objects.find(key);
    if (object == state.objects.end() || state.rests(now_s)) continue;
    if (object->second.passes < state.passes) return {Use::kSoon, 0};
    // Who passed it first comes to it first.
    const bool is_first = standing.use == Use::kNobody;
    const uint64_t at = object->second.passed_at;
    standing = {Use::kLater, is_first ? at : std::min(standing.passed_at, at)};
  }
  return standing;
}

bool CacheNeeds::IsAheadOfOthers(Reader reader, Key key, int64_t now_s) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(readers_.begin(), readers_.end(), [&](const auto& one) {
    const auto& [other, state] = one;
    const auto object = state.objects.find(key);
    return other != reader && object != state.objects.end() && !state.rests(now_s) &&
           object->second.passes < state.passes;
  });
}

}  // namespace penstock
