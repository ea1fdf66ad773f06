// The records of files as the source of a plan: what all ops share that are such a source, whatever
// the format.
//
// Threads:  one thread, while a plan is made.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/stage/file_records_order.h"

namespace penstock {

// Finds the files of the patterns, in the byte order of their names, and makes them the source of
// the plan. Inside an interleave without patterns: the element's file. Messages leave out the
// stage's name.
absl::Status PlanFileRecords(const google::protobuf::RepeatedPtrField<std::string>& patterns,
                             const FileRecordsOptions& options, PlanBuilder& plan);

// Reads the fields that these ops share.
absl::Status ReadCycle(bool has_cycle_length, int64_t cycle_length, bool has_block_length,
                       int64_t block_length, FileRecordsOptions* options);
absl::Status ReadDamagePolicy(const v1::DamagePolicy& policy, FileRecordsOptions* options);

}  // namespace penstock
