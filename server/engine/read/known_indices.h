// Indices of a plan's files that are known already. Making a pipeline asks for the same ones
// several times: for the fingerprint, for the length of an epoch, to go on from a cursor. Each is
// loaded once while somebody keeps them.
//
// Threads: safe from any thread.
// Owns:    weak references; strong ones while a Keep lives.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "io/file/damage.h"
#include "io/record/record_index.h"

namespace penstock {

class KnownIndices {
 public:
  using Index = std::shared_ptr<const RecordIndex>;

  // Null when there is none.
  Index Find(uint32_t file, OnDamage on_damage) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = known_.find({file, on_damage});
    return found == known_.end() ? nullptr : found->second.lock();
  }

  void Add(uint32_t file, OnDamage on_damage, const Index& index) {
    std::lock_guard<std::mutex> lock(mutex_);
    known_[{file, on_damage}] = index;
    if (const auto kept = kept_.lock()) kept->push_back(index);
  }

  // While one lives, indices that are added stay.
  using Keep = std::shared_ptr<std::vector<Index>>;
  Keep KeepAll() {
    std::lock_guard<std::mutex> lock(mutex_);
    Keep kept = kept_.lock();
    if (kept == nullptr) kept_ = kept = std::make_shared<std::vector<Index>>();
    return kept;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<uint32_t, OnDamage>, std::weak_ptr<const RecordIndex>> known_;  // under mutex_
  std::weak_ptr<std::vector<Index>> kept_;                                           // under mutex_
};

}  // namespace penstock
