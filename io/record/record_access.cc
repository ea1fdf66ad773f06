#include "io/record/record_access.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "io/record/record_index.h"
#include "io/record/record_stream.h"
#include "io/record/scan_progress.h"

namespace penstock {
namespace {

// A share that owns nothing: the caller's format outlives the stream.
std::shared_ptr<const RecordFormat> ShareOf(const RecordFormat& format) {
  return {std::shared_ptr<void>(), &format};
}

}  // namespace

absl::StatusOr<absl::Span<const uint8_t>> RecordAccess::Read(RandomAccessFile& file,
                                                             uint64_t offset, uint64_t length,
                                                             Arena& arena) const {
  const RecordShape& shape = this->shape();
  const size_t want = length + shape.footer_bytes;
  uint8_t* const bytes = arena.Allocate(want);
  absl::StatusOr<size_t> count =
      file.ReadAt(offset + shape.header_bytes, absl::MakeSpan(bytes, want));
  if (!count.ok()) return count.status();
  if (*count < want) {
    return FileShrunkError(
        absl::StrCat("the file became shorter than its ", file.size(), " bytes while it was read"));
  }
  if (!Open(bytes, &length, offset + shape.header_bytes + want == file.size()))
    return absl::DataLossError("no whole record is where the file's index says");
  return absl::MakeConstSpan(bytes, length);
}

bool RecordAccess::IsAt(RandomAccessFile& file, uint64_t offset, uint64_t length) const {
  Arena arena;
  return Read(file, offset, length, arena).ok();
}

absl::StatusOr<FoundRecords> ScanByStream(const RecordFormat& format, uint8_t offset_shift,
                                          const std::shared_ptr<RandomAccessFile>& file,
                                          const IndexOptions& options) {
  auto stream = RecordStream::Open(file, Compression::kNone,
                                   {.format = ShareOf(format), .on_damage = options.on_damage});
  if (!stream.ok()) return stream.status();
  RecordOffsetsBuilder offsets(offset_shift, file->size());
  FoundRecords found;
  found.verified = true;
  ScanProgress progress(options);
  RecordChunk chunk;
  do {
    (*stream)->Next(&chunk);
    if (!chunk.error.ok()) return chunk.error;
    for (const RecordChunk::Record& record : chunk.records) offsets.Add(record.offset);
    if (!chunk.records.empty()) found.records_end = chunk.next_offset;
    found.damage.insert(found.damage.end(), chunk.damage.begin(), chunk.damage.end());
    if (absl::Status status = progress.At(chunk.next_offset); !status.ok()) return status;
  } while (!chunk.end_of_file);
  found.offsets = offsets.Finish();
  return found;
}

uint64_t OrdinalByStream(const RecordFormat& format, const std::shared_ptr<RandomAccessFile>& file,
                         uint64_t offset, OnDamage on_damage) {
  auto stream = RecordStream::Open(file, Compression::kNone,
                                   {.format = ShareOf(format), .on_damage = on_damage});
  if (!stream.ok()) return 0;
  RecordChunk chunk;
  uint64_t ordinal = 0;
  do {
    (*stream)->Next(&chunk);
    for (const RecordChunk::Record& record : chunk.records) {
      if (record.offset >= offset) return ordinal;
      ++ordinal;
    }
  } while (chunk.error.ok() && !chunk.end_of_file);
  return ordinal;
}

}  // namespace penstock
