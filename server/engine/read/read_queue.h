// Read tasks: the next records of a file, which the front has asked for and a worker will find.
//
// Threads:  Push() by the front; Pop() by any worker; a request's fields belong to the worker
//           between Pop() and the store of `done`, else to the front.
// Owns:     nothing; a request lives until the front has seen it done.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/memory_block.h"
#include "io/inflate/byte_stream.h"
#include "io/record/record_stream.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/record.h"
#include "server/engine/read/record_store.h"
#include "server/engine/read/work_queue.h"

namespace penstock {

// How the files of a source are read. Constant for a plan.
struct ReadFormat {
  int stage = 0;  // whose clock is charged
  Compression compression = Compression::kNone;
  RecordStreamOptions stream = {};  // the records' format, and what is done about damage

  // Plain files whose records an index finds are read anywhere; everything else from the beginning on.
  bool is_stream() const {
    return compression != Compression::kNone || !stream.format->has_index();
  }
};

struct ReadRequest {
  // Set by the front.
  FileTable* files = nullptr;
  uint32_t file = 0;
  const ReadFormat* format = nullptr;
  std::unique_ptr<RecordStream>* stream = nullptr;  // the file's; opened by its first request
  uint64_t offset = 0;
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

  std::atomic<bool> done{false};  // SYNC chunk-ready
};

using ReadQueue = WorkQueue<ReadRequest>;

// One worker's means of reading: a chunk that stays in its cache, and a stock of cells.
class ChunkReader {
 public:
  explicit ChunkReader(RecordStore& store) : cells_(store) {}

  // Does what the request asks and marks it done. Returns the bytes read.
  uint64_t Run(ReadRequest* request);

  // Cells that it has taken and that no record lies in yet.
  uint64_t spare_cells() const { return cells_.size(); }

 private:
  absl::Status Read(ReadRequest* request);
  // Takes small records out of a map of the file. False: there was none to take.
  bool ReadMapped(RandomAccessFile& file, ReadRequest* request);
  // Reads bytes that nobody wants yet; returns how many.
  uint64_t BringNear(const ReadRequest& request);

  RecordChunk chunk_;         // of plain TFRecords
  RecordChunk stream_chunk_;  // its bytes belong to the stream
  CellCache cells_;
  MemoryBlock pulled_;  // what was brought near; allocated when first needed
};

}  // namespace penstock
