#include "server/engine/record_loader.h"

#include "server/io/tfrecord_reader.h"

namespace penstock {

RowStatus RecordLoader::Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                             Arena& arena) const {
  auto* bytes = arena.AllocateArray<RowBytes>(rows.rows);
  out[0].rows = bytes;
  for (uint32_t row = 0; row < rows.rows; ++row) {
    const RecordRef& record = rows[row];
    bytes[row] = {record.data, record.length};
    if (record.data != nullptr) continue;
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(record.file);
    if (!file.ok()) return {file.status(), static_cast<int>(row)};
    absl::StatusOr<const uint8_t*> data = ReadRecord(**file, record.offset, record.length, arena);
    if (!data.ok()) return {data.status(), static_cast<int>(row)};
    bytes[row].data = *data;
  }
  return {};
}

}  // namespace penstock
