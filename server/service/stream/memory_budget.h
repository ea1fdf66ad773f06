// How much memory rings take of what the configuration allows (`memory`): in all, of one pipeline,
// of one user and of one process.
//
// A pipeline's shared ring is charged to whoever created the pipeline, the small ring of a consumer
// that is behind it to that consumer. Both count for the pipeline.
//
// Threads:  safe from any thread.
// Owns:     counters only. A MemoryShare gives back what it took when it goes.
// Limits:   rings alone are counted. What lies in between, such as records that were read ahead, is
//           not.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "penstock/v1/server.pb.h"

namespace penstock {

// Whom a ring is charged to.
struct MemoryOwner {
  std::string pipeline;
  uid_t uid = static_cast<uid_t>(-1);  // nobody: no user is charged
  pid_t pid = 0;                       // unknown: no process is charged
  // The pipeline's own limit, beside those of the configuration; null or 0: none.
  std::shared_ptr<const std::atomic<uint64_t>> own_limit = nullptr;
};

class MemoryBudget {
 public:
  // For what is taken from now on.
  void SetLimits(const v1::MemoryLimits& limits);

  // ResourceExhausted names the limit, with the figures; then nothing is taken.
  absl::Status Take(const MemoryOwner& owner, uint64_t bytes);
  void GiveBack(const MemoryOwner& owner, uint64_t bytes);

  // What could be taken at the most; UINT64_MAX where nothing is limited.
  uint64_t Left(const MemoryOwner& owner) const;

  uint64_t taken() const;

 private:
  mutable std::mutex mutex_;
  v1::MemoryLimits limits_;                    // all under mutex_
  uint64_t taken_ = 0;                         // in all
  std::map<std::string, uint64_t> pipelines_;  // only those that have taken something
  std::map<uid_t, uint64_t> users_;
  std::map<pid_t, uint64_t> processes_;
};

// What one ring has taken.
class MemoryShare {
 public:
  // `budget` may be null: then there is no limit.
  MemoryShare(std::shared_ptr<MemoryBudget> budget, MemoryOwner owner)
      : budget_(std::move(budget)), owner_(std::move(owner)) {}
  ~MemoryShare();
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;

  absl::Status Take(uint64_t bytes);

 private:
  const std::shared_ptr<MemoryBudget> budget_;
  const MemoryOwner owner_;
  std::mutex mutex_;
  uint64_t bytes_ = 0;  // under mutex_
};

}  // namespace penstock
