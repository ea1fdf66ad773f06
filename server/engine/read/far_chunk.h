// The next records of a plain TFRecord file on another machine, out of the bytes that have arrived.
//
// Records up to kCarriedBytes are put into cells, also those that are long for a local file: when
// they are worked on, their bytes may be far again. Or they stay in the block that was fetched,
// which is kept for them (RecordStore::Borrow). Longer ones are located, and fetched when they are
// worked on (compute/far_records.h).
//
// Threads:  any.
#pragma once

#include <cstdint>
#include <vector>

#include "base/far_file.h"
#include "io/record/record_chunk.h"
#include "server/engine/read/record.h"
#include "server/engine/read/record_store.h"

namespace penstock {

inline constexpr uint64_t kCarriedBytes = 1 << 20;

struct FarChunk {
  // What is to be fetched before there is a record; 0 bytes: nothing.
  uint64_t missing_offset = 0;
  uint64_t missing_bytes = 0;
};

// Fills `chunk` as ReadChunk() does and appends its records, as many as have arrived, to `records`;
// `file`: the number that they have.
FarChunk ReadFarChunk(FarFile& from, uint64_t offset, bool expect_late, OnDamage on_damage,
                      uint32_t file, CellCache& cells, RecordChunk* chunk, RecordList* records);

}  // namespace penstock
