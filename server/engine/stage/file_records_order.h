// The order of the records of files: some files in turns, from which damage is left out.
//
// Threads:  one at a time (the front's lock).
// Limits:   `cycle_length` files at a time, and the one that comes next.
#pragma once

#include <cstdint>
#include <string>

#include "server/engine/order/order_op.h"
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
  // Whether small records are only located (RecordLoader::Locate()); null: they are not.
  std::shared_ptr<const bool> are_located = nullptr;
};

// `cycle_length` files in turns, `block_length` records of each, as tf.data's interleave. The
// position is the number of records taken in this pass, and what was skipped of it.
OrderFactory FileRecords(FileRange files, const std::string& stage,
                         const FileRecordsOptions& options);

// The same of the one file that an element of an outer dataset names (FrontContext::element_file).
OrderFactory ElementRecords(const std::string& stage, const FileRecordsOptions& options);

}  // namespace penstock
