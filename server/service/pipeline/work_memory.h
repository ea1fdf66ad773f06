// The accounts of what pipelines compute and keep (base/memory_account.h), and their limits: those
// of the configuration and of specs, or shares of what the daemon may use.
//
// Threads:  safe from any thread.
// Owns:     the account of the whole daemon; a pipeline has its own.
// Limits:   a pipeline half, all together three quarters of the control group's limit or the
//           machine's memory, where nobody has named others. Whatever the limits, nothing is taken
//           that the control group or the machine has not got.
// Cost:     its making reads a handful of small files, as does each further 64 MiB that pipelines
//           take together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "base/memory_account.h"
#include "penstock/v1/pipeline.pb.h"
#include "penstock/v1/server.pb.h"
#include "ring/memory_limit.h"

namespace penstock {

class WorkMemory {
 public:
  // The least that a spec or the configuration may ask for: some blocks for each worker.
  static constexpr int64_t kLeastBytes = int64_t{16} << 20;

  explicit WorkMemory(const ring::MemoryAtHand& in_all = ring::ReadMemoryInAll());

  // For pipelines that are made from now on, and for all together at once.
  void SetLimits(const v1::MemoryLimits& limits);

  // InvalidArgument where the spec asks for what it may not have.
  absl::Status Check(const v1::PipelineSpec& spec) const;

  // A new account. `shown`: told at each change what has been taken; may be null, and must outlive
  // the account. REQUIRES: Check().
  std::shared_ptr<MemoryAccount> AccountOf(const v1::PipelineSpec& spec,
                                           std::shared_ptr<MemoryAccount::Shown> shown) const;

  const MemoryAccount& whole() const { return *whole_; }

 private:
  uint64_t Half() const { return in_all_.bytes / 2; }

  const ring::MemoryAtHand in_all_;
  const std::shared_ptr<MemoryAccount> whole_;
  mutable std::mutex mutex_;
  v1::MemoryLimits limits_;  // under mutex_
};

}  // namespace penstock
