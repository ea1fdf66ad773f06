#include "server/engine/read_queue.h"

namespace penstock {

void ReadQueue::Push(ReadRequest* request) {
  std::lock_guard<std::mutex> lock(mutex_);
  requests_.push_back(request);
  size_.store(requests_.size(), std::memory_order_relaxed);
}

ReadRequest* ReadQueue::Pop() {
  if (empty()) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  if (requests_.empty()) return nullptr;
  ReadRequest* request = requests_.front();
  requests_.pop_front();
  size_.store(requests_.size(), std::memory_order_relaxed);
  return request;
}

uint64_t RunRead(ReadRequest* request) {
  RecordChunk* chunk = request->chunk;
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = request->files->Open(request->file);
  if (file.ok()) {
    ReadChunk(**file, request->offset, request->expect_late, chunk);
    if (!chunk->error.ok()) chunk->error = WithAddress(chunk->error, **file, chunk->error_offset);
    if (!chunk->end_of_file && !chunk->next_is_late) (*file)->WillNeed(chunk->next_offset, 2 * kChunkBytes);
  } else {
    chunk->records.clear();
    chunk->bytes_read = 0;
    chunk->error = file.status();
  }
  // From the store on, chunk and request are the front's.
  const uint64_t bytes_read = chunk->bytes_read;
  request->done.store(true, std::memory_order_release);  // SYNC chunk-ready
  return bytes_read;
}

}  // namespace penstock
