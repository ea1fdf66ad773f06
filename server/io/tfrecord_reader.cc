#include "server/io/tfrecord_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/io/crc32c.h"

namespace penstock {
namespace {

constexpr uint64_t kFrameBytes = kRecordHeaderBytes + kRecordFooterBytes;
// Late records located by one task, so that the front soon has something to go on with.
constexpr size_t kMaxLateRecords = 64;

uint32_t LoadU32(const uint8_t* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

uint64_t LoadU64(const uint8_t* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

absl::Status ChecksumError(const char* what, uint32_t stored, uint32_t computed) {
  return absl::DataLossError(absl::StrFormat("%s checksum mismatch: stored 0x%08x, computed 0x%08x",
                                             what, stored, computed));
}

// What a file that fails at its very first header most likely is.
absl::Status DescribeFirstHeader(const absl::Status& error, const uint8_t* header) {
  const char* hint = "not a TFRecord file?";
  if (header[0] == 0x1f && header[1] == 0x8b)
    hint = "a gzip file? compressed shards cannot be read yet: decompress it first";
  if (header[0] == 0x28 && header[1] == 0xb5 && header[2] == 0x2f)
    hint = "a zstd file? compressed shards cannot be read yet: decompress it first";
  return absl::DataLossError(absl::StrCat(error.message(), "; ", hint));
}

// Checks a header's 12 bytes, found at `offset` of a file of `size` bytes.
absl::StatusOr<uint64_t> CheckHeader(const uint8_t* header, uint64_t offset, uint64_t size) {
  const uint32_t stored = LoadU32(header + 8);
  const uint32_t computed = MaskCrc32c(Crc32cOfU64(LoadU64(header)));
  if (stored != computed) {
    absl::Status error = ChecksumError("length", stored, computed);
    return offset == 0 ? DescribeFirstHeader(error, header) : error;
  }
  const uint64_t length = LoadU64(header);
  if (length > kMaxRecordBytes) {
    return absl::DataLossError(
        absl::StrCat("record longer than limit: ", length, " > ", kMaxRecordBytes, " bytes"));
  }
  if (length > size - offset - kFrameBytes || size - offset < kFrameBytes) {
    return absl::DataLossError(
        absl::StrCat("record is cut: its length is ", length, " bytes, the file has ",
                     size - std::min(size, offset + kRecordHeaderBytes), " more"));
  }
  return length;
}

absl::Status CutHeader(uint64_t left) {
  return absl::DataLossError(
      absl::StrCat("header is cut: expected 12 bytes, the file has ", left, " more"));
}

void Fail(RecordChunk* chunk, uint64_t offset, absl::Status error) {
  chunk->error = std::move(error);
  chunk->error_offset = offset;
  chunk->next_offset = offset;
}

absl::Status Shrunk(const RandomAccessFile& file) {
  return absl::DataLossError(
      absl::StrCat("the file became shorter than its ", file.size(), " bytes while it was read"));
}

// Locates late records by their headers alone.
void WalkLate(RandomAccessFile& file, uint64_t offset, RecordChunk* chunk) {
  const uint64_t size = file.size();
  while (offset < size && chunk->records.size() < kMaxLateRecords) {
    uint8_t header[kRecordHeaderBytes];
    absl::StatusOr<size_t> count = file.ReadAt(offset, absl::MakeSpan(header));
    if (!count.ok()) return Fail(chunk, offset, count.status());
    if (*count < kRecordHeaderBytes) {
      return Fail(chunk, offset,
                  size - offset < kRecordHeaderBytes ? CutHeader(size - offset) : Shrunk(file));
    }
    chunk->bytes_read += *count;
    absl::StatusOr<uint64_t> length = CheckHeader(header, offset, size);
    if (!length.ok()) return Fail(chunk, offset, length.status());
    if (*length <= kLateRecordBytes) {
      chunk->next_is_late = false;
      break;
    }
    chunk->records.push_back({offset, static_cast<uint32_t>(*length), true});
    chunk->next_is_late = true;
    offset += kFrameBytes + *length;
  }
  chunk->next_offset = offset;
  chunk->end_of_file = offset >= size;
}

}  // namespace

void ReadChunk(RandomAccessFile& file, uint64_t offset, bool expect_late, RecordChunk* chunk) {
  chunk->records.clear();
  chunk->error = absl::OkStatus();
  chunk->end_of_file = false;
  chunk->bytes_read = 0;
  chunk->next_is_late = false;
  chunk->next_offset = offset;
  const uint64_t size = file.size();
  if (expect_late) {
    WalkLate(file, offset, chunk);
    if (!chunk->records.empty() || !chunk->error.ok() || chunk->end_of_file) return;
  }
  if (!chunk->buffer) {
    // Not value-initialised: every byte that is looked at has been read, and the padding is only
    // ever skipped over.
    chunk->buffer.reset(new uint8_t[kChunkBytes + Arena::kPadding]);
  }
  chunk->buffer_offset = offset;
  const uint64_t want = std::min<uint64_t>(kChunkBytes, size - offset);
  absl::StatusOr<size_t> count = file.ReadAt(offset, absl::MakeSpan(chunk->buffer.get(), want));
  if (!count.ok()) return Fail(chunk, offset, count.status());
  chunk->bytes_read += *count;
  if (*count < want) return Fail(chunk, offset, Shrunk(file));

  const uint8_t* const begin = chunk->buffer.get();
  const uint8_t* const end = begin + want;
  const uint8_t* frame = begin;
  while (frame < end) {
    const uint64_t frame_offset = offset + (frame - begin);
    if (static_cast<uint64_t>(end - frame) < kRecordHeaderBytes) {
      if (size - frame_offset < kRecordHeaderBytes)
        return Fail(chunk, frame_offset, CutHeader(size - frame_offset));
      break;
    }
    const uint64_t length = LoadU64(frame);
    // A whole small record, as nearly all are, needs no other look at its header.
    const uint64_t left = end - frame;
    if (length > kLateRecordBytes || length + kFrameBytes > left ||
        MaskCrc32c(Crc32cOfU64(length)) != LoadU32(frame + 8)) {
      absl::StatusOr<uint64_t> checked = CheckHeader(frame, frame_offset, size);
      if (!checked.ok()) return Fail(chunk, frame_offset, checked.status());
      if (length <= kLateRecordBytes) break;
      chunk->records.push_back({frame_offset, static_cast<uint32_t>(length), true});
      chunk->next_is_late = true;
      if (length + kFrameBytes >= left) {
        chunk->next_offset = frame_offset + kFrameBytes + length;
        chunk->end_of_file = chunk->next_offset >= size;
        return;
      }
      frame += kFrameBytes + length;
      continue;
    }
    const uint8_t* data = frame + kRecordHeaderBytes;
    const uint32_t stored = LoadU32(data + length);
    const uint32_t computed = MaskCrc32c(Crc32c(data, length));
    if (stored != computed)
      return Fail(chunk, frame_offset, ChecksumError("data", stored, computed));
    chunk->records.push_back({frame_offset, static_cast<uint32_t>(length), false});
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
  if (stored != computed) return ChecksumError("data", stored, computed);
  return data;
}

uint64_t RecordOrdinal(RandomAccessFile& file, uint64_t offset) {
  uint64_t ordinal = 0;
  uint64_t at = 0;
  while (at < offset) {
    uint8_t header[kRecordHeaderBytes];
    absl::StatusOr<size_t> count = file.ReadAt(at, absl::MakeSpan(header));
    if (!count.ok() || *count < kRecordHeaderBytes) break;
    absl::StatusOr<uint64_t> length = CheckHeader(header, at, file.size());
    if (!length.ok()) break;
    at += kFrameBytes + *length;
    ++ordinal;
  }
  return ordinal;
}

absl::Status WithAddress(const absl::Status& status, RandomAccessFile& file, uint64_t offset) {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), " (", file.path(), ", record ",
                                   RecordOrdinal(file, offset), ", offset ", offset, ")"));
}

}  // namespace penstock
