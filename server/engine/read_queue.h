// Read tasks: chunks that the front has asked for and a worker will fill.
//
// Threads:  Push() by the front; Pop() by any worker; a request's fields belong to the worker between Pop() and the store of `done`, else to the front.
// Owns:     nothing; a request lives until the front has seen it done.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

#include "server/engine/file_table.h"
#include "server/io/tfrecord_reader.h"

namespace penstock {

struct ReadRequest {
  FileTable* files = nullptr;
  uint32_t file = 0;
  uint64_t offset = 0;
  bool expect_late = false;
  RecordChunk* chunk = nullptr;
  std::atomic<bool> done{false};  // SYNC chunk-ready
};

class ReadQueue {
 public:
  void Push(ReadRequest* request);
  // Null when there is none.
  ReadRequest* Pop();
  bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }

 private:
  std::mutex mutex_;
  std::deque<ReadRequest*> requests_;  // under mutex_
  std::atomic<size_t> size_{0};
};

// Fills the request's chunk and marks it done. Returns the bytes read.
uint64_t RunRead(ReadRequest* request);

}  // namespace penstock
