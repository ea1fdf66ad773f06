// What was read and unpacked last, by keys: whoever asks for what is not there has it made, and who
// comes meanwhile waits.
//
// Threads:  safe from any thread.
// Owns:     up to `kept_bytes` of what was asked for last; what somebody holds lives on.
// Cost:     a lock.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/patient_once.h"

namespace penstock {

template <typename Value>
class KeptOnce {
 public:
  struct Held {
    uint64_t key = 0;
    PatientOnce once;
    absl::Status status;  // these two constant behind once
    Value value;
    bool is_counted = false;  // under mutex_
    uint64_t bytes = 0;       // under mutex_
  };

  explicit KeptOnce(uint64_t kept_bytes) : kept_bytes_max_(kept_bytes) {}

  // The value of a key: `make` fills it, once, and says what became of it; an error is forgotten,
  // so that whoever asks next tries again. `bytes_of` says what it takes.
  template <typename Make, typename BytesOf>
  std::shared_ptr<const Held> Get(uint64_t key, const Make& make, const BytesOf& bytes_of) {
    const std::shared_ptr<Held> held = Hold(key);
    held->once.Call([&] { held->status = make(&held->value); });
    Count(held, bytes_of);
    return held;
  }

 private:
  using List = std::list<std::shared_ptr<Held>>;

  std::shared_ptr<Held> Hold(uint64_t key) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = places_.find(key);
    if (found != places_.end()) {
      kept_.splice(kept_.begin(), kept_, found->second);
      return kept_.front();
    }
    kept_.push_front(std::make_shared<Held>());
    kept_.front()->key = key;
    places_[key] = kept_.begin();
    return kept_.front();
  }

  // The value is there now, and counts among those that are kept.
  template <typename BytesOf>
  void Count(const std::shared_ptr<Held>& held, const BytesOf& bytes_of) {
    std::vector<std::shared_ptr<Held>> let_go;  // behind the lock
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = places_.find(held->key);
    if (held->is_counted || found == places_.end() || *found->second != held) return;
    if (!held->status.ok()) {
      // Whoever asks next tries again.
      let_go.push_back(held);
      kept_.erase(found->second);
      places_.erase(found);
      return;
    }
    held->is_counted = true;
    held->bytes = bytes_of(held->value);
    kept_bytes_ += held->bytes;
    for (auto last = kept_.end(); kept_bytes_ > kept_bytes_max_ && last != kept_.begin();) {
      --last;
      // One that is being made counts when it is there.
      if (*last == held || !(*last)->is_counted) continue;
      kept_bytes_ -= (*last)->bytes;
      places_.erase((*last)->key);
      let_go.push_back(std::move(*last));
      last = kept_.erase(last);
    }
  }

  const uint64_t kept_bytes_max_;
  std::mutex mutex_;
  // Under mutex_: the last that was asked for is the first.
  List kept_;
  std::unordered_map<uint64_t, typename List::iterator> places_;
  uint64_t kept_bytes_ = 0;
};

}  // namespace penstock
