// Read tasks: the next records of a file, which the front has asked for and a worker will find. A
// worker that would have to wait for the bytes has them fetched; the request is pushed again when
// they have arrived.
//
// Threads:  Push() by the front, and by who has fetched bytes; Pop() by any worker; a request's
//           fields belong to the worker between Pop() and the store of `done` or Fetch(), else to
//           the front.
// Owns:     nothing; a request lives until the front has seen it done.
// Limits:   streams (ReadFormat::is_stream()) are not fetched ahead: their worker waits, as it does
//           for a disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/memory_block.h"
#include "io/inflate/byte_stream.h"
#include "io/record/record_access.h"
#include "io/record/record_stream.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/record.h"
#include "server/engine/read/record_store.h"
#include "server/engine/tasks/away_tasks.h"
#include "server/engine/tasks/work_queue.h"

namespace penstock {

// How the files of a source are read. Constant for a plan.
struct ReadFormat {
  int stage = 0;  // whose clock is charged
  Compression compression = Compression::kNone;
  RecordStreamOptions stream = {};  // the records' format, and what is done about damage
  bool gives_path = false;  // beside the record's bytes, the file's path as the feature `path`

  // How records are found in any order; null where they cannot be, and are read from the beginning
  // on.
  const RecordAccess* access() const {
    return compression == Compression::kNone ? stream.format->access() : nullptr;
  }
  // Whether a RecordStream reads the records, one read at a time for each file, and not by chunks
  // of frames.
  bool is_stream() const { return access() == nullptr || !access()->shape().is_framed; }
};

struct ReadRequest;
using ReadQueue = WorkQueue<ReadRequest>;

struct ReadRequest final : AwayTask {
  // Set by the front.
  FileTable* files = nullptr;
  uint32_t file = 0;
  const ReadFormat* format = nullptr;
  std::unique_ptr<RecordStream>* stream = nullptr;  // the file's; opened by its first request
  uint64_t offset = 0;
  uint64_t ordinal = 0;  // of the first record that a stream opened there gives: for messages
  bool expect_late = false;
  uint64_t max_bytes = kChunkBytes;  // that are taken out of a map
  int worker = -1;                   // who has the stream's state in its cache; -1: nobody
  uint64_t pull_bytes = 0;           // not 0: so many bytes are only brought into the page cache

  // Set by the worker.
  RecordList records;
  std::vector<Damage> damage;  // behind the records
  absl::Status error;          // what stopped the reading behind the last record
  Damage lost;                 // of an error that is damage: from where on, and why
  bool end_of_file = false;
  uint64_t next_offset = 0;
  bool next_is_late = false;

  // While its bytes are fetched: the queue that it comes back to, and what they lie in; then,
  // whether they have been.
  ReadQueue* queue = nullptr;
  std::shared_ptr<RandomAccessFile> fetches;
  absl::Status fetched;

  std::atomic<bool> done{false};  // SYNC chunk-ready

  // Who pops it sees what is written here, by the queue's lock.
  void Ended(absl::Status status) override {
    fetched = std::move(status);
    queue->Push(this);
  }
};

// One worker's means of reading: a chunk that stays in its cache, and a stock of cells.
class ChunkReader {
 public:
  explicit ChunkReader(RecordStore& store) : cells_(store) {}

  // Where a request goes whose bytes are to be fetched.
  struct Parking {
    AwayTasks& away;
    ReadQueue& queue;
  };
  // Does what the request asks and marks it done. Returns the bytes read. With `parking`, absent
  // where the bytes are fetched first: then the request is not the caller's any more, and comes
  // back to the queue.
  std::optional<uint64_t> Run(ReadRequest* request, const Parking* parking = nullptr);

  // Cells that it has taken and that no record lies in yet.
  uint64_t spare_cells() const { return cells_.size(); }

 private:
  // Whether the request has left for its bytes.
  bool Park(const std::shared_ptr<RandomAccessFile>& file, ReadRequest* request,
            const Parking& parking);
  absl::Status Read(const std::shared_ptr<RandomAccessFile>& file, ReadRequest* request);
  // Takes small records out of a map of the file. False: there was none to take.
  bool ReadMapped(RandomAccessFile& file, ReadRequest* request);
  // Reads bytes that nobody wants yet; returns how many.
  uint64_t BringNear(RandomAccessFile& file, const ReadRequest& request);

  RecordChunk chunk_;         // of plain TFRecords
  RecordChunk stream_chunk_;  // its bytes belong to the stream
  CellCache cells_;
  MemoryBlock pulled_;  // what was brought near; allocated when first needed
};

}  // namespace penstock
