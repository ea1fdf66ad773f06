// One step in flight: the records of its rows, the memory that they fill, and what is left to do.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "server/engine/order/position.h"
#include "server/engine/read/record.h"
#include "server/engine/tensor/batch_sink.h"
#include "server/engine/tensor/block_ends.h"
#include "server/engine/tensor/variable_rows.h"
#include "server/engine/tensor/world.h"

namespace penstock {

// Threads: assembled under the front's lock; then constant but for the atomics and the failure,
// until it is committed and the front takes it back.
struct Step {
  StepInfo info;
  RecordList records;  // row r's are those from r * width on
  // Rows whose records are here, of which those of `shown` go to the slot: all of them, where no
  // other host has any of this batch (World). `first_row` is the number of the first in the whole
  // batch.
  uint32_t rows = 0;
  RowSpan shown;
  uint32_t first_row = 0;
  Position position;  // behind this step
  ClaimedSlot slot;
  VariableRows variable;
  BlockEnds ends;                        // of the grains that nobody has taken yet
  std::atomic<uint32_t> grains_left{0};  // SYNC block-done
  std::atomic<bool> done{false};         // SYNC step-done

  std::mutex failure_mutex;
  absl::Status failure;  // of the lowest failing row; under failure_mutex
  int failed_row = 0;    // under failure_mutex
  std::string
      failure_reason;  // the failure's message without the row's address; under failure_mutex
  bool failed_loading = false;  // the bytes themselves could not be had; under failure_mutex
};

}  // namespace penstock
