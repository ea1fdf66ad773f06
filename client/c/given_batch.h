// What stands behind a penstock_batch: the rows of a leased step that a program was given.
//
// Threads:  a batch belongs to whoever holds it.
// Owns:     a slot's batch lives in its source and is handed out again with the slot; a copy has
//           memory of its own.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "client/c/joined_rows.h"
#include "client/c/penstock.h"
#include "ring/reader.h"

namespace penstock_client {
struct Source;
}

struct penstock_batch {
  penstock_loader* loader = nullptr;
  penstock_client::Source* source = nullptr;
  penstock::ring::Lease lease;
  // The rows that this consumer sees, of the step or of those that were joined, from first_row on.
  uint32_t first_row = 0;
  uint32_t rows = 0;
  uint32_t valid_rows = 0;
  uint64_t number = 0;     // of a batch of the consumer's own size
  uint64_t taken = 0;      // how many penstock_next gave before it
  std::string own_cursor;  // in place of the lease's
  bool is_copy = false;
  bool was_written = false;  // or may have been, in the source's private view
  std::vector<penstock_tensor> tensors;
  std::vector<int64_t> shapes;  // kMaxDims for each tensor
  // Offsets and row splits of a part of the rows, counted anew from 0.
  std::vector<std::vector<int64_t>> counted_anew;

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t, Free> memory;  // of a copy
  // Of rows of several steps, and those of them that the daemon counts as held until the batch is
  // released.
  std::unique_ptr<penstock_client::JoinedRows> joined;
  std::vector<std::pair<penstock_client::Source*, penstock::ring::Lease>> held;
};
