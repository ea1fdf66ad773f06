// Makes the indices of tokens of a plan's stages that can have one
// (server/engine/plan/count_index.h): computes every document of their files, once, in the order in
// which they lie, and keeps the number of tokens of each.
//
// Threads:  one call at a time for a plan; it has `workers` threads of its own while it runs.
//           Several calls for one file all do the work, and one of them writes the index. They
//           compute for the calling thread: charged to its account (base/memory_account.h), and
//           until its flag says stop (base/stop_flag.h).
// Limits:   kMaxIndexWorkers threads; 4 bytes a record of one file, and what a block of 64
//           documents takes for each worker.
// Cost:     that of reading and computing all documents.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/engine/plan/plan.h"

namespace penstock {

constexpr uint32_t kMaxIndexWorkers = 256;

struct TokenIndexProgress {
  std::string stage;
  std::string path;
  uint64_t documents = 0;  // of the file so far, with those that are left out
  uint64_t left_out = 0;
  uint64_t tokens = 0;  // of the others
  uint64_t bytes_done = 0;
  uint64_t bytes = 0;
  std::string index_path;  // set when the file is done
  bool was_there = false;  // a sound one was
};

// `tell` hears of it a few times a second, and of each file's end; where it returns false, nobody
// wants any more of it (Cancelled). FailedPrecondition, with the reasons, where no stage can have
// an index. A document that fails is an error with its address, unless an `ignore_errors` leaves it
// out.
absl::Status IndexTokens(const Plan& plan, uint32_t workers,
                         const std::function<bool(const TokenIndexProgress& progress)>& tell);

}  // namespace penstock
