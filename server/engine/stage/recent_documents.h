// Documents that were computed lately, since the next sequence may have the rest of them.
//
// Threads:  safe from any thread.
// Owns:     copies of their values, of at most `bytes_max` bytes; those that were kept first make
//           place. The one that was kept last stays, whatever its size: a document of many
//           sequences is computed once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/memory_charge.h"

namespace penstock {

class RecentDocuments {
 public:
  struct Document {
    MemoryCharge charge;
    std::string tokens;
    std::string mask;  // what it is by, if anything
  };
  using Kept = std::shared_ptr<const Document>;

  explicit RecentDocuments(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  using Place = std::pair<uint32_t, uint64_t>;  // the record's file and offset

  // Null where it is not kept.
  Kept Find(const Place& place) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = kept_.find(place);
    return found == kept_.end() ? nullptr : found->second;
  }

  void Keep(const Place& place, Kept document) {
    const uint64_t bytes = BytesOf(*document);
    std::lock_guard<std::mutex> lock(mutex_);
    if (!kept_.try_emplace(place, std::move(document)).second) return;
    order_.push_back(place);
    bytes_ += bytes;
    while (bytes_ > bytes_max_ && order_.size() > 1) {
      const auto first = kept_.find(order_.front());
      order_.pop_front();
      bytes_ -= BytesOf(*first->second);
      kept_.erase(first);
    }
  }

 private:
  static uint64_t BytesOf(const Document& document) {
    constexpr uint64_t kAround = 256;
    return document.tokens.capacity() + document.mask.capacity() + kAround;
  }

  const uint64_t bytes_max_;
  mutable std::mutex mutex_;
  uint64_t bytes_ = 0;          // under mutex_
  std::map<Place, Kept> kept_;  // the same
  std::deque<Place> order_;     // the same: by when they were kept
};

}  // namespace penstock
