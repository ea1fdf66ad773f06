// Records that lie in a mapped file, copied before they are checked, since whoever can write the
// file may change its bytes at any time.
//
// Threads:  any; an Arena, or a CellCache, belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "base/arena.h"
#include "server/engine/read/record.h"
#include "server/engine/read/record_store.h"

namespace penstock {

// A copy of a record that lies in a map, and of the `footer_bytes` behind it: to be checked there
// (RecordAccess::Open), after some others were copied, so that what is stored has arrived when it
// is loaded again.
uint8_t* CopyMapped(const RecordRef& record, uint32_t footer_bytes, Arena& arena);

// Copies bytes that lie in a map, of what is copied from front to back: memory behind them is asked
// for meanwhile, as no processor does by itself beyond a page.
void CopyAhead(const uint8_t* from, size_t bytes, uint8_t* to);

// What CopyMappedFrames() has gone through.
struct MappedFrames {
  size_t bytes = 0;           // of whole frames
  bool next_is_late = false;  // the record behind them is above kLateRecordBytes
};

// Small records of a plain TFRecord file, each in a cell and checked there: the short way for files
// that are in memory, one copy in the place of two. Appends those at the beginning of `bytes`,
// whose first byte is at `offset` of file number `file` in the manifest, to `records`. It ends in
// front of whatever is unusual: damage, a record above kLateRecordBytes, one that is not all there.
// ReadChunk goes on there, and knows what to call it.
MappedFrames CopyMappedFrames(absl::Span<const uint8_t> bytes, uint64_t offset, uint32_t file,
                              CellCache& cells, RecordList* records);

// The same, without a look at the data of any of them: they are located by their headers, and lie
// in no cell. It ends in front of what is unusual of headers alone.
MappedFrames LocateMappedFrames(absl::Span<const uint8_t> bytes, uint64_t offset, uint32_t file,
                                RecordList* records);

}  // namespace penstock
