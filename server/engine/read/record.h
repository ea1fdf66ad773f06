// References to records: what the front moves instead of bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock {

// One record. A small one's bytes lie in a cell of the record store; a long one's are still in the
// file (`data` null), to be read by whoever handles it. Where an order deals in positions, what
// `offset` and `length` mean is its source's own (ColumnLoader::Resolve). Of a row in a block
// (server/engine/read/row_block.h) `data` is the block, and `length` the row's number in it.
struct RecordRef {
  const uint8_t* data = nullptr;
  uint64_t offset = 0;  // of the record's header in its file
  uint32_t length = 0;
  uint32_t file = 0;        // index in the plan's manifest
  uint64_t epoch : 62 = 0;  // the pass that it belongs to, as `repeat` numbers it
  // Was a position, and is a record now, in no cell. Of what is in one: is a row of a block.
  uint64_t resolved : 1 = 0;
  // `data` lies in a map of the file, or of one that keeps elements: neither safe from changes nor
  // checked yet
  uint64_t in_map : 1 = 0;

  bool in_cell() const { return data != nullptr && in_map == 0; }
};

using RecordList = std::vector<RecordRef>;

// Fills elements up to a width with references that are of no file: where a dataset's elements have
// fewer than those beside them.
inline void PadElement(uint32_t count, RecordList& out) {
  RecordRef nothing;
  nothing.file = UINT32_MAX;
  out.resize(out.size() + count, nothing);
}

}  // namespace penstock
