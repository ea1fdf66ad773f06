// References to records: what the front moves instead of bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "server/io/tfrecord_reader.h"

namespace penstock {

// One record. Its bytes lie in a chunk (`chunk` set), in a cell of the record store (`data` set, no chunk), or still in the file (`data` null).
struct RecordRef {
  const uint8_t* data = nullptr;
  RecordChunk* chunk = nullptr;
  uint64_t offset = 0;  // of the record's header in its file
  uint32_t length = 0;
  uint32_t file = 0;  // index in the source's manifest
};

using RecordList = std::vector<RecordRef>;

}  // namespace penstock
