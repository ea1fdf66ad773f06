#include "io/record/tfrecord_reader.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/file/crc32c.h"
#include "io/file/damage.h"
#include "io/inflate/byte_stream.h"
#include "io/record/byte_window.h"
#include "io/record/resynchronise.h"
#include "io/record/tfrecord_frame.h"

namespace penstock {
namespace {

// Late records located by one task, so that the front soon has something to go on with.
constexpr size_t kMaxLateRecords = 64;
// The same where they are verified as well.
constexpr uint64_t kMaxVerifiedBytes = 4 << 20;

void Fail(RecordChunk* chunk, uint64_t offset, absl::Status error) {
  chunk->error = std::move(error);
  chunk->error_offset = offset;
  chunk->next_offset = offset;
}

absl::Status Shrunk(const RandomAccessFile& file) {
  return FileShrunkError(
      absl::StrCat("the file became shorter than its ", file.size(), " bytes while it was read"));
}

// Ends the chunk at damage that begins at `offset`: with an error, or behind it.
void EndAtDamage(RandomAccessFile& file, uint64_t offset, DamageReason reason, const uint8_t* frame,
                 OnDamage on_damage, RecordChunk* chunk) {
  if (on_damage != OnDamage::kSkipRecord) {
    chunk->error_reason = reason;
    return Fail(chunk, offset, DescribeDamage(reason, frame, file.size() - offset, offset == 0));
  }
  // A share that owns nothing: the caller's file outlives the search.
  std::shared_ptr<RandomAccessFile> share(std::shared_ptr<void>(), &file);
  absl::StatusOr<std::unique_ptr<ByteStream>> stream =
      OpenStream(std::move(share), Compression::kNone);
  absl::Status status = stream.status();
  Damage damage;
  if (status.ok()) {
    ByteWindow window(*std::move(stream), file.size());
    status = window.Skip(offset);
    if (status.ok()) status = window.Ensure(kFrameBytes);
    if (status.ok()) status = Resynchronise(window, reason, &damage);
  }
  if (!status.ok()) return Fail(chunk, offset, std::move(status));
  chunk->damage.push_back(damage);
  chunk->bytes_read += damage.length;
  chunk->next_offset = offset + damage.length;
  chunk->end_of_file = chunk->next_offset >= file.size();
}

// Whether the data of a record matches its checksum, read in pieces that need no memory to speak
// of.
absl::StatusOr<bool> VerifyData(RandomAccessFile& file, uint64_t offset, uint64_t length) {
  std::vector<uint8_t> piece(kChunkBytes);
  uint32_t crc = 0;
  uint64_t at = offset + kRecordHeaderBytes;
  uint64_t left = length;
  while (true) {
    // The last piece has the checksum behind it.
    const size_t want = std::min<uint64_t>(left + kRecordFooterBytes, piece.size());
    absl::StatusOr<size_t> count = file.ReadAt(at, absl::MakeSpan(piece.data(), want));
    if (!count.ok()) return count.status();
    if (*count < want) return Shrunk(file);
    const size_t data_bytes = std::min<uint64_t>(left, want);
    crc = ExtendCrc32c(crc, piece.data(), data_bytes);
    left -= data_bytes;
    at += data_bytes;
    if (left == 0 && data_bytes + kRecordFooterBytes <= want)
      return MaskCrc32c(crc) == LoadU32(piece.data() + data_bytes);
  }
}

// Takes a late record at `offset`, verified where damage ends no stream. False ends the chunk.
bool TakeLate(RandomAccessFile& file, uint64_t offset, uint64_t length, const uint8_t* header,
              OnDamage on_damage, RecordChunk* chunk, uint64_t* verified_bytes) {
  if (on_damage != OnDamage::kFail) {
    absl::StatusOr<bool> holds = VerifyData(file, offset, length);
    if (!holds.ok()) {
      Fail(chunk, offset, holds.status());
      return false;
    }
    chunk->bytes_read += length;
    *verified_bytes += length;
    if (!*holds && on_damage == OnDamage::kSkipRecord) {
      EndAtDamage(file, offset, DamageReason::kDataChecksum, header, on_damage, chunk);
    } else if (!*holds) {
      // Its data is not at hand to be described.
      chunk->error_reason = DamageReason::kDataChecksum;
      Fail(chunk, offset, absl::DataLossError("data checksum mismatch"));
    }
    if (!*holds) return false;
  }
  chunk->records.push_back({offset, static_cast<uint32_t>(length), true});
  chunk->next_is_late = true;
  return true;
}

// Locates late records by their headers alone.
void WalkLate(RandomAccessFile& file, uint64_t offset, OnDamage on_damage, RecordChunk* chunk) {
  const uint64_t size = file.size();
  uint64_t verified_bytes = 0;
  while (offset < size && chunk->records.size() < kMaxLateRecords &&
         verified_bytes < kMaxVerifiedBytes) {
    uint8_t header[kRecordHeaderBytes];
    absl::StatusOr<size_t> count = file.ReadAt(offset, absl::MakeSpan(header));
    if (!count.ok()) return Fail(chunk, offset, count.status());
    if (*count < kRecordHeaderBytes) {
      if (size - offset >= kRecordHeaderBytes) return Fail(chunk, offset, Shrunk(file));
      return EndAtDamage(file, offset, DamageReason::kCutHeader, header, on_damage, chunk);
    }
    chunk->bytes_read += *count;
    if (const auto reason = CheckHeader(header, size - offset))
      return EndAtDamage(file, offset, *reason, header, on_damage, chunk);
    const uint64_t length = LoadU64(header);
    if (length <= kLateRecordBytes) {
      chunk->next_is_late = false;
      break;
    }
    if (!TakeLate(file, offset, length, header, on_damage, chunk, &verified_bytes)) return;
    offset += kFrameBytes + length;
  }
  chunk->next_offset = offset;
  chunk->end_of_file = offset >= size;
}

}  // namespace

void ReadChunk(RandomAccessFile& file, uint64_t offset, bool expect_late, RecordChunk* chunk,
               OnDamage on_damage, DamagedData damaged_data) {
  chunk->records.clear();
  chunk->damage.clear();
  chunk->error = absl::OkStatus();
  chunk->end_of_file = false;
  chunk->bytes_read = 0;
  chunk->next_is_late = false;
  chunk->next_offset = offset;
  chunk->header_bytes = kRecordHeaderBytes;
  const uint64_t size = file.size();
  if (expect_late) {
    WalkLate(file, offset, on_damage, chunk);
    if (!chunk->records.empty() || !chunk->damage.empty() || !chunk->error.ok() ||
        chunk->end_of_file) {
      return;
    }
  }
  if (!chunk->buffer) {
    // Not value-initialised: every byte that is looked at has been read, and the padding is only
    // ever skipped over.
    chunk->buffer.reset(new uint8_t[kChunkBytes + Arena::kPadding]);
  }
  chunk->bytes = chunk->buffer.get();
  chunk->buffer_offset = offset;
  const uint64_t want = std::min<uint64_t>(kChunkBytes, size - offset);
  absl::StatusOr<size_t> count = file.ReadAt(offset, absl::MakeSpan(chunk->buffer.get(), want));
  if (!count.ok()) return Fail(chunk, offset, count.status());
  chunk->bytes_read += *count;
  if (*count < want) return Fail(chunk, offset, Shrunk(file));

  const uint8_t* const begin = chunk->buffer.get();
  const uint8_t* const end = begin + want;
  const uint8_t* frame = begin;
  uint64_t verified_bytes = 0;
  while (frame < end && verified_bytes < kMaxVerifiedBytes) {
    const uint64_t frame_offset = offset + (frame - begin);
    if (static_cast<uint64_t>(end - frame) < kRecordHeaderBytes) {
      if (size - frame_offset < kRecordHeaderBytes) {
        return EndAtDamage(file, frame_offset, DamageReason::kCutHeader, frame, on_damage, chunk);
      }
      break;
    }
    const uint64_t length = LoadU64(frame);
    // A whole small record, as nearly all are, needs no other look at its header.
    const uint64_t left = end - frame;
    if (length > kLateRecordBytes || length + kFrameBytes > left || !HeaderHolds(frame)) {
      if (const auto reason = CheckHeader(frame, size - frame_offset))
        return EndAtDamage(file, frame_offset, *reason, frame, on_damage, chunk);
      if (length <= kLateRecordBytes) break;
      if (!TakeLate(file, frame_offset, length, frame, on_damage, chunk, &verified_bytes)) return;
      if (length + kFrameBytes >= left) {
        chunk->next_offset = frame_offset + kFrameBytes + length;
        chunk->end_of_file = chunk->next_offset >= size;
        return;
      }
      frame += kFrameBytes + length;
      continue;
    }
    const uint8_t* data = frame + kRecordHeaderBytes;
    const bool holds = DataHolds(data, length);
    if (!holds && damaged_data == DamagedData::kEndsChunk) {
      return EndAtDamage(file, frame_offset, DamageReason::kDataChecksum, frame, on_damage, chunk);
    }
    chunk->records.push_back({frame_offset, static_cast<uint32_t>(length), !holds});
    chunk->next_is_late = false;
    frame = data + length + kRecordFooterBytes;
    __builtin_prefetch(frame + 2048);
  }
  chunk->next_offset = offset + (frame - begin);
  chunk->end_of_file = chunk->next_offset >= size;
}

absl::StatusOr<const uint8_t*> ReadRecord(RandomAccessFile& file, uint64_t offset, uint32_t length,
                                          Arena& arena) {
  const size_t want = length + kRecordFooterBytes;
  uint8_t* data = arena.Allocate(want);
  absl::StatusOr<size_t> count =
      file.ReadAt(offset + kRecordHeaderBytes, absl::MakeSpan(data, want));
  if (!count.ok()) return count.status();
  if (*count < want) return Shrunk(file);
  const uint32_t stored = LoadU32(data + length);
  const uint32_t computed = MaskCrc32c(Crc32c(data, length));
  if (stored != computed) return DataChecksumError(stored, computed);
  return data;
}

uint64_t RecordOrdinal(RandomAccessFile& file, uint64_t offset) {
  uint64_t ordinal = 0;
  uint64_t at = 0;
  while (at < offset) {
    uint8_t header[kRecordHeaderBytes];
    absl::StatusOr<size_t> count = file.ReadAt(at, absl::MakeSpan(header));
    if (!count.ok() || *count < kRecordHeaderBytes) break;
    if (CheckHeader(header, file.size() - at)) break;
    at += kFrameBytes + LoadU64(header);
    ++ordinal;
  }
  return ordinal;
}

absl::Status WithAddress(const absl::Status& status, RandomAccessFile& file, uint64_t offset) {
  return WithMessage(status, absl::StrCat(status.message(), " (", file.path(), ", record ",
                                          RecordOrdinal(file, offset), ", offset ", offset, ")"));
}

}  // namespace penstock
