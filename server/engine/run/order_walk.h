// The order of a plan without its work: which record fills which row of which step. Provenance
// without a log.
//
// Threads:  one thread, which also does the reads.
// Owns:     everything it needs; nothing of a running pipeline.
// Cost:     going to a step is what a cursor's resumption takes; each further step some tens of ns
//           a row, and the reading of sources that have no index.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/memory_account.h"
#include "base/row_identity.h"
#include "base/signature.h"
#include "server/engine/plan/plan.h"

namespace penstock {

// One record that feeds a row.
struct RecordPlace {
  std::string file;
  uint64_t record = 0;  // its ordinal in the file, where that is known (plain files with an index)
  bool record_known = false;
  uint64_t offset = 0;  // in a compressed file, in its plain bytes
  uint64_t epoch = 0;
};

struct RowPlace {
  uint64_t step = 0;
  uint32_t row = 0;
  uint64_t epoch = 0;
};

// How far a look-up may go. Both may be null and must outlive it.
struct WalkLimits {
  const std::atomic<bool>* stop = nullptr;  // it is not wanted any more: Cancelled
  MemoryAccount* memory = nullptr;          // what it keeps is charged to
};

// The records of row `row` of step `step`, one for each source that feeds it and reads files; those
// of all its rows where it is a batch itself. Of elements made in the front (`scan`, `reduce`) or
// out of a file that keeps them, only the one that an error would name. OutOfRange when the stream
// ends before it, with where.
absl::StatusOr<std::vector<RecordPlace>> FindRecords(std::shared_ptr<const Plan> plan,
                                                     uint64_t step, uint32_t row,
                                                     const WalkLimits& limits = {});

// One row, computed alone.
struct ShownRow {
  std::vector<RecordPlace> records;  // as of FindRecords
  // What random functions drew, but for those in front of a `filter` or another op where values
  // decide.
  DrawLog log;
  Signature features;               // without the batch axis, with every size known
  std::vector<std::string> values;  // their bytes; strings as base/column.h has them
};

// Row `row` of step `step`, with what its random functions drew. OutOfRange as FindRecords; an
// error of the row's work as a running pipeline would tell it. At most kShownBytesMax of values,
// else ResourceExhausted.
inline constexpr uint64_t kShownBytesMax = uint64_t{256} << 20;
absl::StatusOr<ShownRow> ShowRow(std::shared_ptr<const Plan> plan, uint64_t step, uint32_t row,
                                 const WalkLimits& limits = {});

// The first row from step `first_step` on that the record at `offset` of `file` fills (a path of
// the plan, or its end); looks at `steps_max` steps. NotFound when there is none.
absl::StatusOr<RowPlace> FindRow(std::shared_ptr<const Plan> plan, const std::string& file,
                                 uint64_t offset, uint64_t first_step, uint64_t steps_max,
                                 const WalkLimits& limits = {});

}  // namespace penstock
