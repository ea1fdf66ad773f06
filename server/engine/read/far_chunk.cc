#include "server/engine/read/far_chunk.h"

#include <memory>
#include <utility>

#include "io/record/tfrecord_frame.h"
#include "io/record/tfrecord_reader.h"
#include "server/engine/read/arrived_file.h"

namespace penstock {
namespace {

// What lies behind the first `count` records has not been seen.
void CutAt(size_t count, uint64_t offset, RecordChunk* chunk) {
  chunk->records.resize(count);
  chunk->damage.clear();
  chunk->error = absl::OkStatus();
  chunk->end_of_file = false;
  chunk->next_offset = offset;
}

}  // namespace

FarChunk ReadFarChunk(FarFile& from, uint64_t offset, bool expect_late, OnDamage on_damage,
                      uint32_t file, CellCache& cells, RecordChunk* chunk, RecordList* records) {
  ArrivedFile arrived(from);
  ReadChunk(arrived, offset, expect_late, chunk, on_damage);
  if (arrived.missing_bytes() > 0 && !chunk->error.ok())
    CutAt(chunk->records.size(), chunk->next_offset, chunk);
  for (size_t i = 0; i < chunk->records.size(); ++i) {
    const RecordChunk::Record& record = chunk->records[i];
    const uint8_t* data = record.late ? nullptr : cells.Keep(chunk->data(record), record.length);
    const uint32_t bytes = record.length + kRecordFooterBytes;
    const uint64_t begin = record.offset + kRecordHeaderBytes;
    std::shared_ptr<const uint8_t> lent;
    if (record.late && record.length <= kCarriedBytes) lent = arrived.Lend(begin, bytes);
    if (lent != nullptr) {
      chunk->bytes_read += bytes;
      // What is damaged is told of by who works on it.
      if (DataHolds(lent.get(), record.length)) {
        data = lent.get();
        cells.Borrow(data, std::move(lent));
      }
    } else if (record.late && record.length <= kCarriedBytes) {
      uint8_t* const cell = cells.Take(bytes);
      const absl::StatusOr<size_t> read = arrived.ReadAt(begin, absl::MakeSpan(cell, bytes));
      if (read.ok() && *read == bytes && DataHolds(cell, record.length)) {
        data = cell;
        chunk->bytes_read += bytes;
      } else {
        // What is damaged is told of by who works on it.
        cells.GiveBack(cell, bytes);
      }
      if (!read.ok() && arrived.missing_offset() == begin) {
        chunk->next_is_late = true;
        CutAt(i, record.offset, chunk);
        break;
      }
    }
    records->push_back({data, record.offset, record.length, file, 0});
  }
  const bool has_nothing =
      chunk->records.empty() && chunk->damage.empty() && chunk->error.ok() && !chunk->end_of_file;
  if (arrived.missing_bytes() == 0 || !has_nothing) return {};
  return {arrived.missing_offset(), arrived.missing_bytes()};
}

}  // namespace penstock
