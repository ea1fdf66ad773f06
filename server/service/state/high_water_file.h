// The file in which a daemon leaves for its successors the first step of a pipeline that nobody can
// have been handed.
//
//   file:  record │ zeros up to 512 bytes │ record │ zeros up to 512 bytes
//   record:  "PNHIGH01" │ sequence (u64) │ step (u64) │ CRC-32C of what stands before it (u32)
//
// The record that was not written last is written in place: no room on the disk is needed for it,
// and after a loss of power in the middle the other one counts.
//
// Threads:  safe from any thread; one write after the other.
// Owns:     a descriptor. Where the file was removed, what is written goes nowhere.
// Cost:     Write() waits for the disk, once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ring/descriptor.h"
#include "server/service/state/state_folder.h"

namespace penstock {

class HighWaterFile {
 public:
  // Makes it anew, with `step`.
  static absl::StatusOr<std::unique_ptr<HighWaterFile>> Create(const StateFolder& folder,
                                                               const std::string& name,
                                                               uint64_t step);
  // NotFound; DataLoss where neither record is whole.
  static absl::StatusOr<std::unique_ptr<HighWaterFile>> Open(const StateFolder& folder,
                                                             const std::string& name);

  // As it was written last.
  uint64_t step() const;
  // It is on the disk when this returns.
  absl::Status Write(uint64_t step);
  const std::string& path() const { return path_; }

 private:
  HighWaterFile(std::string path, ring::Descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  const std::string path_;
  const ring::Descriptor file_;
  mutable std::mutex mutex_;
  uint64_t sequence_ = 0;  // under mutex_
  uint64_t step_ = 0;      // under mutex_
};

}  // namespace penstock
