#include "io/record/tfrecord_access.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/record/record_format.h"
#include "io/record/record_index.h"
#include "io/record/scan_progress.h"
#include "io/record/tfrecord_frame.h"
#include "io/record/tfrecord_reader.h"

namespace penstock {
namespace {

constexpr size_t kWalkBytes = 256 << 10;
// Enough of a long record to hold its header, and what follows where it was shorter after all.
constexpr size_t kPeekBytes = 4 << 10;

// With the checksums of the headers, which are all that is looked at.
absl::StatusOr<FoundRecords> ScanHeaders(RandomAccessFile& file, const IndexOptions& options) {
  const uint64_t size = file.size();
  RecordOffsetsBuilder offsets(0, size);
  std::vector<uint8_t> piece(kWalkBytes);
  uint64_t piece_offset = 0;
  size_t piece_bytes = 0;
  size_t want = kWalkBytes;
  ScanProgress progress(options);
  uint64_t offset = 0;
  while (offset < size) {
    const uint64_t need = std::min(kRecordHeaderBytes, size - offset);
    if (offset + need > piece_offset + piece_bytes) {
      absl::StatusOr<size_t> count = file.ReadAt(
          offset, absl::MakeSpan(piece.data(), std::min<uint64_t>(want, size - offset)));
      if (!count.ok()) return count.status();
      piece_offset = offset;
      piece_bytes = *count;
      if (piece_bytes < need) {
        return FileShrunkError(absl::StrCat("the file became shorter than its ", size,
                                            " bytes while it was read (", file.path(), ")"));
      }
      if (absl::Status status = progress.At(offset); !status.ok()) return status;
    }
    const uint8_t* const header = piece.data() + (offset - piece_offset);
    const std::optional<DamageReason> reason =
        need < kRecordHeaderBytes ? DamageReason::kCutHeader : CheckHeader(header, size - offset);
    if (reason) {
      return WithAddress(DescribeDamage(*reason, header, size - offset, offset == 0), file, offset);
    }
    const uint64_t length = LoadU64(header);
    offsets.Add(offset);
    offset += length + kFrameBytes;
    want = length > kWalkBytes / 4 ? kPeekBytes : kWalkBytes;
  }
  FoundRecords found;
  found.offsets = offsets.Finish();
  found.records_end = size;
  return found;
}

class Access final : public RecordAccess {
 public:
  std::string IndexKey() const override { return TfrecordFormat()->ContentKey(); }
  const RecordShape& shape() const override { return shape_; }

  absl::StatusOr<FoundRecords> Scan(const std::shared_ptr<RandomAccessFile>& file,
                                    const IndexOptions& options) const override {
    if (!options.verify && options.on_damage != OnDamage::kSkipRecord)
      return ScanHeaders(*file, options);
    // With all checksums.
    absl::StatusOr<FoundRecords> found = ScanByStream(*TfrecordFormat(), 0, file, options);
    if (found.ok()) found->records_end = file->size();
    return found;
  }

  bool Open(uint8_t* bytes, uint64_t* length, bool) const override {
    return DataHolds(bytes, *length);
  }

  absl::StatusOr<absl::Span<const uint8_t>> Read(RandomAccessFile& file, uint64_t offset,
                                                 uint64_t length, Arena& arena) const override {
    absl::StatusOr<const uint8_t*> data =
        ReadRecord(file, offset, static_cast<uint32_t>(length), arena);
    if (!data.ok()) return data.status();
    return absl::MakeConstSpan(*data, length);
  }

  bool IsAt(RandomAccessFile& file, uint64_t offset, uint64_t length) const override {
    uint8_t header[kRecordHeaderBytes];
    const absl::StatusOr<size_t> read = file.ReadAt(offset, absl::MakeSpan(header));
    return read.ok() && *read == sizeof(header) && HeaderHolds(header) && LoadU64(header) == length;
  }

  uint64_t OrdinalOf(const std::shared_ptr<RandomAccessFile>& file,
                     uint64_t offset) const override {
    return RecordOrdinal(*file, offset);
  }

 private:
  const RecordShape shape_ = {.header_bytes = kRecordHeaderBytes,
                              .footer_bytes = kRecordFooterBytes,
                              .least_bytes = kFrameBytes,
                              .is_framed = true};
};

}  // namespace

const RecordAccess& TfrecordAccess() {
  static const auto* const access = new Access;
  return *access;
}

}  // namespace penstock
