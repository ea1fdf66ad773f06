#include "tests/support/frames.h"

#include "io/file/crc32c.h"
#include "io/record/tfrecord_reader.h"
#include "tests/support/catch.h"

namespace penstock::test {

std::string Header(uint64_t length) {
  const uint32_t crc = MaskCrc32c(Crc32c(reinterpret_cast<const uint8_t*>(&length), 8));
  std::string header(reinterpret_cast<const char*>(&length), 8);
  return header.append(reinterpret_cast<const char*>(&crc), 4);
}

std::string Frame(const std::string& data) {
  const uint32_t crc =
      MaskCrc32c(Crc32c(reinterpret_cast<const uint8_t*>(data.data()), data.size()));
  return (Header(data.size()) + data).append(reinterpret_cast<const char*>(&crc), 4);
}

Found ReadChunks(RandomAccessFile& file, OnDamage on_damage) {
  Found found;
  uint64_t offset = 0;
  bool expect_late = false;
  RecordChunk chunk;
  Arena arena;
  while (true) {
    ReadChunk(file, offset, expect_late, &chunk, on_damage);
    for (const RecordChunk::Record& record : chunk.records) {
      const uint8_t* data = record.late ? nullptr : chunk.data(record);
      if (record.late) {
        absl::StatusOr<const uint8_t*> late = ReadRecord(file, record.offset, record.length, arena);
        if (!late.ok()) {
          found.error = late.status();
          found.error_offset = record.offset;
          return found;
        }
        data = *late;
      }
      found.records.emplace_back(reinterpret_cast<const char*>(data), record.length);
      found.offsets.push_back(record.offset);
    }
    found.damage.insert(found.damage.end(), chunk.damage.begin(), chunk.damage.end());
    if (!chunk.error.ok()) {
      found.error = chunk.error;
      found.error_offset = chunk.error_offset;
      return found;
    }
    if (chunk.end_of_file) return found;
    // Every chunk brings the reader forward, or it would never end.
    REQUIRE(chunk.next_offset > offset);
    offset = chunk.next_offset;
    expect_late = chunk.next_is_late;
  }
}

Found ReadStream(std::shared_ptr<RandomAccessFile> file, Compression compression,
                 const RecordStreamOptions& options) {
  Found found;
  auto stream = RecordStream::Open(std::move(file), compression, options);
  if (!stream.ok()) {
    found.error = stream.status();
    return found;
  }
  RecordChunk chunk;
  uint64_t offset = 0;
  while (true) {
    CHECK((*stream)->ordinal() == options.start_ordinal + found.records.size());
    (*stream)->Next(&chunk);
    for (const RecordChunk::Record& record : chunk.records) {
      found.records.emplace_back(reinterpret_cast<const char*>(chunk.data(record)), record.length);
      found.offsets.push_back(record.offset);
    }
    found.damage.insert(found.damage.end(), chunk.damage.begin(), chunk.damage.end());
    if (!chunk.error.ok() || chunk.end_of_file) {
      found.error = chunk.error;
      found.error_offset = chunk.error_offset;
      // Both are sticky.
      RecordChunk again;
      (*stream)->Next(&again);
      CHECK(again.error == chunk.error);
      CHECK(again.end_of_file == chunk.end_of_file);
      CHECK(again.records.empty());
      CHECK(again.damage.empty());
      return found;
    }
    REQUIRE(chunk.next_offset > offset);
    offset = chunk.next_offset;
  }
}

bool Tiles(const Found& found, uint64_t size) {
  uint64_t at = 0;
  size_t record = 0;
  size_t damage = 0;
  while (at < size) {
    if (record < found.offsets.size() && found.offsets[record] == at) {
      at += found.records[record++].size() + kRecordHeaderBytes + kRecordFooterBytes;
    } else if (damage < found.damage.size() && found.damage[damage].offset == at) {
      if (found.damage[damage].length == 0) return false;
      at += found.damage[damage++].length;
    } else {
      return false;
    }
  }
  return at == size && record == found.offsets.size() && damage == found.damage.size();
}

}  // namespace penstock::test
