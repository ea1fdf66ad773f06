// What stands behind the opaque types of penstock.h.
//
// Threads:  `next_mutex` guards taking steps and attaching anew; a batch belongs to whoever holds
//           it; what else several threads touch stands under `mutex` or is atomic.
// Owns:     a loader lives until it is detached and its last batch is released. It reads one ring
//           after another: each (a source) lives until its last batch is released, and the daemon
//           counts its slots as held until then. A slot's batch lives in its source and is handed
//           out again with the slot, a copy has memory of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/c/given_batch.h"
#include "client/c/penstock.h"
#include "client/c/source.h"
#include "ring/attach.h"
#include "ring/descriptor.h"
#include "ring/reader.h"

namespace penstock_client {

// A step of which not all rows were taken (own_batches.h).
struct OpenStep {
  Source* source = nullptr;  // null: there is none
  penstock::ring::Lease lease;
  uint32_t next = 0;       // row
  uint32_t valid = 0;      // rows that are elements
  uint32_t views = 0;      // batches that were made of it in place
  bool is_short = false;   // a batch of the consumer ends with it
  bool after_gap = false;  // steps in front of it were missed
  bool copies = false;
  bool has_before = false;
  std::string before;  // the cursor in front of the step
};

// Where a consumer stands that takes batches of a size of its own.
struct OwnPosition {
  OpenStep open;
  std::unique_ptr<penstock_batch> joining;  // of which rows are still missing
  bool is_beyond_share = false;             // some of its rows are not held, as of a copy
  penstock_batch* ready = nullptr;          // complete, and not asked for yet
  // Of the next batch; not known before the first step, unless a cursor tells it.
  std::optional<uint64_t> number;
  bool aligns = false;                // begins with a batch whose number is the same for everybody
  uint64_t rows_to_skip = 0;          // for that
  std::optional<uint64_t> next_step;  // that is due
  // Of the cursor that it begins with: rows of this step that were taken already.
  uint64_t part_step = 0;
  uint32_t part_rows = 0;
};

}  // namespace penstock_client

struct penstock_loader {
  // Constant after the first attachment.
  std::string socket_path;
  std::string pipeline;
  penstock::ring::ConsumerSpec spec;
  uint64_t reconnect_ns = 0;
  uint64_t attach_ns = 0;              // how long attaching and seeking may take
  std::function<bool()> is_cancelled;  // asked meanwhile; null: nobody ends them
  uint32_t batch_rows = 0;             // the rows of its batches; 0: those of the pipeline's
  uint32_t step_rows = 0;              // of a full step, where batch_rows is not 0
  std::string
      unjoinable;  // why its batches cannot cross from one step into the next; "" where they can
  uint64_t watch = 0;             // its number in hang_up_watch.h; 0: it is not watched
  uint32_t num_forks = 0;         // of its process: see IsOfParent()
  penstock_cuda* cuda = nullptr;  // where batches are taken from the device's memory
  std::string structure;
  std::optional<uint64_t> num_steps;
  std::string uncounted;
  uint64_t pass_steps = 0;  // which of the steps are full: see ring::SegmentHeader
  uint32_t pass_last_rows = 0;
  std::vector<penstock::ring::TensorEntry> entries;
  std::vector<std::string> names;
  std::vector<penstock_tensor> tensors;  // of a full batch
  std::vector<uint32_t> variable;        // the indices of those that are not fixed
  std::vector<int64_t> shapes;

  std::atomic<uint64_t> references{1};
  // Of a consumer with batch_rows: its next step, counted in its own batches. Written under
  // `next_mutex`.
  std::atomic<uint64_t> own_position{0};

  std::mutex next_mutex;

  // Under `next_mutex`.
  uint64_t num_taken = 0;
  bool lost = false;  // rows were taken that could not be given, for want of memory; until a seek
  penstock_client::Reattachment reattachment;
  penstock_client::OwnPosition own;

  // `source` changes under both mutexes; under `mutex` the rest too.
  std::mutex mutex;
  penstock_client::Source* source = nullptr;
  penstock::ring::ReaderStats earlier_stats;  // of the sources before
  uint32_t reconnects = 0;
  // Leases of a split group from sources before, in the order in which the daemon was told of them.
  std::vector<penstock_client::EarlierLease> earlier_leases;
  std::vector<uint64_t> earlier_returned;

  // Written under `next_mutex`, read by any thread.
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> copies{0};
  std::atomic<uint64_t> joined{0};
};

namespace penstock_client {

// Whether this process is a forked child of the loader's. There it is only let go of: its place at
// the ring is the parent's, and its mutexes may be held by threads that the child does not have.
inline bool IsOfParent(const penstock_loader& loader) {
  return loader.num_forks != penstock::ring::NumForks();
}

}  // namespace penstock_client
