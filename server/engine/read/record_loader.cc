#include "server/engine/read/record_loader.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/record/record_access.h"
#include "server/engine/read/mapped_records.h"

namespace penstock {

RowStatus LoadRecords(RowReferences rows, FileTable& files, const RecordAccess* access, Column* out,
                      Arena& arena) {
  auto* bytes = arena.AllocateArray<RowBytes>(rows.rows);
  out->rows = bytes;
  const RecordShape shape = access != nullptr ? access->shape() : RecordShape();
  const uint64_t around = shape.header_bytes + shape.footer_bytes;
  bool are_in_cells = true;
  for (uint32_t row = 0; row < rows.rows; ++row) {
    const RecordRef& record = rows[row];
    are_in_cells = are_in_cells && record.in_cell();
    bytes[row] = {record.in_map ? CopyMapped(record, shape.footer_bytes, arena) : record.data,
                  record.length};
  }
  if (are_in_cells) return {};
  uint64_t bytes_read = 0;
  for (uint32_t row = 0; row < rows.rows; ++row) {
    const RecordRef& record = rows[row];
    if (record.data != nullptr && !record.in_map) continue;
    bytes_read += record.length + around;
    if (record.in_map) {
      uint64_t length = record.length;
      // Frames say themselves where they end.
      const bool at_end = !shape.is_framed && record.offset + around + length ==
                                                  files.manifest()[record.file].size_bytes;
      if (access->Open(const_cast<uint8_t*>(bytes[row].data), &length, at_end)) {
        bytes[row].size = length;
        continue;
      }
    }
    // What a map did not give either: the file itself tells what is there.
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(record.file);
    if (!file.ok()) return {file.status(), static_cast<int>(row)};
    absl::StatusOr<absl::Span<const uint8_t>> data =
        access->Read(**file, record.offset, record.length, arena);
    if (!data.ok()) return {data.status(), static_cast<int>(row)};
    bytes[row] = {data->data(), data->size()};
  }
  if (bytes_read > 0) files.CountRead(bytes_read);
  return {};
}

Signature RecordSignature(bool gives_path) {
  Signature signature = {{"value", {DType::kString, {}}}};
  if (gives_path) signature.push_back({"path", {DType::kString, {}}});
  return signature;
}

void LoadPaths(RowReferences rows, const FileTable& files, Column* out, Arena& arena) {
  auto* paths = arena.AllocateArray<RowBytes>(rows.rows);
  out->rows = paths;
  for (uint32_t row = 0; row < rows.rows; ++row) {
    const std::string& path = files.manifest()[rows[row].file].path;
    paths[row] = {reinterpret_cast<const uint8_t*>(path.data()), path.size()};
  }
}

// What is done about damage decides which records there are, and nothing about their bytes.
std::string RecordLoader::ContentKeyOf(Compression compression, const RecordFormat& format) {
  return absl::StrCat("records ", static_cast<int>(compression), " ", format.ContentKey());
}

void RecordLoader::Resolve(RecordRef* refs, uint32_t rows, uint32_t stride, FileTable& files,
                           Arena&) const {
  // Maps that were asked for lately: files are mostly read in turns.
  constexpr uint32_t kRecent = 16;
  std::array<std::pair<uint32_t, NearMap*>, kRecent> recent;
  recent.fill({UINT32_MAX, nullptr});
  const RecordShape shape = access_->shape();
  for (uint32_t row = 0; row < rows; ++row) {
    RecordRef& record = refs[size_t{row} * stride];
    if (record.data != nullptr || record.length > kLateRecordBytes) continue;
    if (record.file - files_.first >= files_.count) continue;
    auto& [file, map] = recent[record.file % kRecent];
    if (file != record.file) {
      file = record.file;
      map = files.MapOf(file);
      if (map != nullptr && map->file().torn()) map = nullptr;
    }
    const uint64_t frame_bytes = uint64_t{shape.header_bytes} + record.length + shape.footer_bytes;
    if (map == nullptr || record.offset + frame_bytes > map->file().size()) continue;
    record.data = map->file().bytes() + record.offset + shape.header_bytes;
    record.in_map = 1;
  }
}

RowStatus RecordLoader::Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                             Arena& arena) const {
  if (out.size() > 1) LoadPaths(rows, files, &out[1], arena);
  return LoadRecords(rows, files, access_, &out[0], arena);
}

}  // namespace penstock
