// The next records of a plain TFRecord file that is mapped: each is copied into its cell and then checked there, since whoever can
// write the file may change its bytes at any time.
//
// Only whole, small, sound records are taken. At anything else this ends, and ReadChunk (io/tfrecord_reader.h), which reads the file,
// says what is there: so damage and errors are the same with a map as without.
//
// Threads:  any; a CellCache belongs to one.
// Limits:   kChunkBytes at a time, as ReadChunk.
// Cost:     one pass over the bytes; a read costs two and a system call.
#pragma once

#include <cstdint>

#include "server/base/arena.h"
#include "server/engine/record.h"
#include "server/engine/record_store.h"
#include "server/io/mapped_file.h"

namespace penstock {

// Appends the records from `offset` on and returns where they end: `offset` itself where none can be taken.
uint64_t ReadMapped(const MappedFile& map, uint32_t file, uint64_t offset, CellCache& cells,
                    RecordList* records);

// A copy of the data of a record that lies in a map, and of the checksum behind them: to be checked there (DataHolds), after some
// others were copied, so that what is stored has arrived when it is loaded again.
const uint8_t* CopyMapped(const RecordRef& record, Arena& arena);

}  // namespace penstock
