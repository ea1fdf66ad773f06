#include "server/engine/read/record_loader.h"

#include "absl/strings/str_cat.h"
#include "io/record/tfrecord_frame.h"
#include "io/record/tfrecord_reader.h"
#include "server/engine/read/mapped_records.h"

namespace penstock {

RowStatus LoadRecords(RowReferences rows, FileTable& files, Column* out, Arena& arena) {
  auto* bytes = arena.AllocateArray<RowBytes>(rows.rows);
  out->rows = bytes;
  for (uint32_t row = 0; row < rows.rows; ++row) {
    const RecordRef& record = rows[row];
    bytes[row] = {record.in_map ? CopyMapped(record, arena) : record.data, record.length};
  }
  uint64_t bytes_read = 0;
  for (uint32_t row = 0; row < rows.rows; ++row) {
    const RecordRef& record = rows[row];
    if (record.in_map || record.data == nullptr) bytes_read += record.length + kFrameBytes;
    const bool at_hand = record.in_map ? DataHolds(bytes[row].data, record.length)  //
                                       : record.data != nullptr;
    if (at_hand) continue;
    // What a map did not give either: the file itself tells what is there.
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(record.file);
    if (!file.ok()) return {file.status(), static_cast<int>(row)};
    absl::StatusOr<const uint8_t*> data = ReadRecord(**file, record.offset, record.length, arena);
    if (!data.ok()) return {data.status(), static_cast<int>(row)};
    bytes[row].data = *data;
  }
  if (bytes_read > 0) files.CountRead(bytes_read);
  return {};
}

// What is done about damage decides which records there are, and nothing about their bytes.
std::string RecordLoader::ContentKeyOf(const ReadFormat& format) {
  return absl::StrCat("records ", static_cast<int>(format.compression), " ",
                      format.stream.format->ContentKey());
}

RowStatus RecordLoader::Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                             Arena& arena) const {
  return LoadRecords(rows, files, &out[0], arena);
}

}  // namespace penstock
