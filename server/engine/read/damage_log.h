// What the sources of a running pipeline have skipped.
//
// Threads:  Add() by the front; everything else from any thread.
// Limits:   the first kMaxListed places are listed, all are counted.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "io/file/damage.h"

namespace penstock {

struct SkippedPlace {
  uint32_t file = 0;  // index in the manifest
  uint64_t epoch = 0;
  Damage damage;
  std::string message;  // of an element that failed; else "": the damage says all
};

class DamageLog {
 public:
  static constexpr size_t kMaxListed = 1000;

  void Add(const SkippedPlace& place) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    if (places_.size() < kMaxListed) places_.push_back(place);
  }
  uint64_t count() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }
  std::vector<SkippedPlace> places() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return places_;
  }

 private:
  mutable std::mutex mutex_;
  uint64_t count_ = 0;                // under mutex_
  std::vector<SkippedPlace> places_;  // under mutex_
};

}  // namespace penstock
