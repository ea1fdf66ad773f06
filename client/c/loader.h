// What stands behind the opaque types of penstock.h.
//
// Threads:  `next_mutex` guards the reader's Next() and Leave() and the statistics; a batch belongs
// to
//           whoever holds it; `references` is atomic.
// Owns:     a loader lives until it is detached and its last batch is released; a slot's batch
// lives
//           in the loader and is handed out again with the slot, a copy has memory of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/c/penstock.h"
#include "ring/reader.h"

struct penstock_batch {
  penstock_loader* loader = nullptr;
  penstock::ring::Lease lease;
  // The rows that the shapes show now.
  uint32_t shaped_rows = 0;
  bool is_copy = false;
  std::vector<penstock_tensor> tensors;
  std::vector<int64_t> shapes;  // kMaxDims for each tensor

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t, Free> memory;  // of a copy
};

struct penstock_loader {
  std::unique_ptr<penstock::ring::Reader> reader;
  std::vector<std::string> names;
  std::vector<penstock_tensor> tensors;  // of a full batch
  std::vector<uint32_t> variable;        // the indices of those that are not fixed
  std::vector<int64_t> shapes;
  std::vector<penstock_batch> slots;  // one for each slot

  std::atomic<uint64_t> references{1};

  std::mutex next_mutex;

  // Written under `next_mutex`, read by any thread.
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> copies{0};
};
