// TFRecord frames, and all that a reader finds in a file of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "io/record/record_stream.h"

namespace penstock::test {

std::string Frame(const std::string& data);

// Only the header, whose checksum holds.
std::string Header(uint64_t length);

// What reading from the start to the end or to an error finds.
struct Found {
  std::vector<std::string> records;
  std::vector<uint64_t> offsets;
  std::vector<Damage> damage;
  absl::Status error;
  uint64_t error_offset = 0;

  friend bool operator==(const Found&, const Found&) = default;
};

// By ReadChunk, and ReadRecord for late records.
Found ReadChunks(RandomAccessFile& file, OnDamage on_damage = OnDamage::kFail);

// By RecordStream.
Found ReadStream(std::shared_ptr<RandomAccessFile> file, Compression compression,
                 const RecordStreamOptions& options);

// Records and damage follow each other without a gap from 0 to `size`.
bool Tiles(const Found& found, uint64_t size);

}  // namespace penstock::test
