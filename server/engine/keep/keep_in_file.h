// The stages that keep their elements (cache, snapshot, save), while a plan is made.
//
// Threads: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/engine/keep/file_kept.h"
#include "server/engine/plan/plan_builder.h"

namespace penstock {

struct KeepOptions {
  std::string folder;
  std::string name = {};  // of the file; "": a fingerprint of what its elements are made of
  uint64_t bytes_max = UINT64_MAX;
  Unwritten unwritten = Unwritten::kComputed;
  bool compressed = false;  // only where it is not read
  bool sharded = false;     // the first feature is an int64 scalar, the number of a shard
};

// Puts the elements into cells. InvalidArgument inside of stages that are for another file or
// window each time.
absl::Status BeginKeeping(PlanBuilder& plan);

// The same, and adds the order op that keeps them in a file.
absl::Status KeepInFile(const KeepOptions& options, PlanBuilder& plan);

}  // namespace penstock
