// How much of files may be mapped for being read again and again, by all pipelines of a process together.
//
// Threads:  all methods from any thread.
// Limits:   kMaxFiles, besides the bytes: who reads records at random needs maps as well (kMaxMappedFiles).
#pragma once

#include <cstdint>
#include <mutex>

namespace penstock {

class MapBudget {
 public:
  static constexpr int kMaxFiles = 2048;

  explicit MapBudget(uint64_t bytes) : bytes_left_(bytes) {}
  MapBudget(const MapBudget&) = delete;
  MapBudget& operator=(const MapBudget&) = delete;

  // False: there is no room for one more file of so many bytes.
  bool Take(uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (files_left_ == 0 || bytes > bytes_left_) return false;
    --files_left_;
    bytes_left_ -= bytes;
    return true;
  }

  void GiveBack(uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++files_left_;
    bytes_left_ += bytes;
  }

 private:
  std::mutex mutex_;
  int files_left_ = kMaxFiles;  // under mutex_
  uint64_t bytes_left_;         // under mutex_
};

}  // namespace penstock
