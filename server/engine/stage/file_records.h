// The records of files as elements: what the ops tfrecord, text_line and fixed_length_record share.
//
// Threads: one at a time (the front's lock).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/engine/order/order_op.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/read_queue.h"
#include "server/engine/read/skip_limits.h"

namespace penstock {

// When damage is too much, and how far a skip reaches; single records are skipped by the reader
// (format.stream.on_damage).
struct DamagePolicy {
  bool skip_shard = false;  // the rest of the file
  SkipLimits limits;
};

struct FileRecordsOptions {
  ReadFormat format;
  DamagePolicy damage;
  uint32_t cycle_length = 1;
  uint64_t block_length = 1;
};

// `cycle_length` files in turns, `block_length` records of each, as tf.data's interleave. The position is the number of records taken
// in this pass, and what was skipped of it.
OrderFactory FileRecords(FileRange files, const std::string& stage,
                         const FileRecordsOptions& options);

// The same of the one file that an element of an outer dataset names (FrontContext::element_file).
OrderFactory ElementRecords(const std::string& stage, const FileRecordsOptions& options);

// Finds the files of the patterns, in the byte order of their names, and makes them the source of the plan. Inside an interleave
// without patterns: the element's file. Messages leave out the stage's name.
absl::Status PlanFileRecords(const google::protobuf::RepeatedPtrField<std::string>& patterns,
                             const FileRecordsOptions& options, PlanBuilder& plan);

// Reads the fields that these ops share.
absl::Status ReadCycle(bool has_cycle_length, int64_t cycle_length, bool has_block_length,
                       int64_t block_length, FileRecordsOptions* options);
absl::Status ReadDamagePolicy(const v1::DamagePolicy& policy, FileRecordsOptions* options);

}  // namespace penstock
