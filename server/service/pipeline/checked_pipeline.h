// A spec that was looked through, and is to become a pipeline: its plan, and the numbers that it
// runs with.
//
// Threads:  safe from any thread.
// Errors:   InvalidArgument of a name or a number; else what MakePlan() has found.
// Cost:     CheckPipeline() lists and opens files.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/numa_node.h"
#include "penstock/v1/control.pb.h"
#include "penstock/v1/server.pb.h"
#include "ring/layout.h"
#include "server/engine/plan/plan.h"

namespace penstock {

// 1 to 64 of [a-z A-Z 0-9 _ . -], the first a letter or digit.
absl::Status CheckPipelineName(absl::string_view name);

// A checked spec: nothing runs yet.
struct CheckedPipeline {
  std::shared_ptr<const Plan> plan;
  // For whose batches its rings are laid out: `plan`, or that of a world of fewer hosts, of which
  // each has more rows.
  std::shared_ptr<const Plan> layout;
  uint32_t slots = 0;
  int workers = 0;  // 0: one for each processor
  int numa_node = kNoNumaNode;
  uint64_t read_deadline_ns = 0;  // 0: none
};
// `fewest_hosts`: for the rows of one of how few hosts its rings have room; 0: for those of
// `world`.
absl::StatusOr<CheckedPipeline> CheckPipeline(const v1::PipelineSpec& spec,
                                              const v1::WorkerDefaults& defaults, FileSystem& files,
                                              World world = {}, uint32_t fewest_hosts = 0);

// The slots of a ring that nobody has named a number for.
uint32_t DefaultSlotsOf(const CheckedPipeline& checked);

// Numbers that a spec, or a change of it, may name; 0: the daemon chooses.
inline constexpr int kMinSlots = 2;
inline constexpr int kMaxSlots = ring::kMaxSlots;
absl::Status CheckSlots(int64_t slots);
inline constexpr int64_t kMinReadAhead = 64 << 10;
inline constexpr int64_t kMaxReadAhead = 64 << 20;
absl::Status CheckReadAhead(int64_t bytes);

// What a client is told of it; no state.
v1::Pipeline Describe(const CheckedPipeline& checked);

}  // namespace penstock
