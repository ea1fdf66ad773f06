#include "server/engine/read_queue.h"

namespace penstock {
namespace {

// Asked of the kernel beyond what is read, so that a disk works while the processor does.
constexpr uint64_t kReadAheadBytes = 512 << 10;

}  // namespace

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

uint64_t ChunkReader::Run(ReadRequest* request) {
  uint64_t bytes_read = 0;
  request->records.clear();
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = request->files->Open(request->file);
  if (file.ok()) {
    ReadChunk(**file, request->offset, request->expect_late, &chunk_);
    bytes_read = chunk_.bytes_read;
    request->records.reserve(chunk_.records.size());
    for (const RecordChunk::Record& record : chunk_.records) {
      const uint8_t* data = record.late ? nullptr : cells_.Keep(chunk_.data(record), record.length);
      request->records.push_back({data, record.offset, record.length, request->file});
    }
    request->error = chunk_.error.ok() ? absl::OkStatus()
                                       : WithAddress(chunk_.error, **file, chunk_.error_offset);
    request->end_of_file = chunk_.end_of_file;
    request->next_offset = chunk_.next_offset;
    request->next_is_late = chunk_.next_is_late;
    if (!chunk_.end_of_file && !chunk_.next_is_late) {
      // The read before this one asked for all but the last part.
      const uint64_t asked =
          request->offset == 0 ? chunk_.next_offset : request->offset + kReadAheadBytes;
      const uint64_t wanted = chunk_.next_offset + kReadAheadBytes;
      if (wanted > asked) (*file)->WillNeed(asked, wanted - asked);
    }
  } else {
    request->error = file.status();
  }
  // From the store on the request is the front's.
  request->done.store(true, std::memory_order_release);  // SYNC chunk-ready
  return bytes_read;
}

}  // namespace penstock
