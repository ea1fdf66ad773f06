// The records of a stream of plain bytes, in order: of compressed files, and of plain ones but
// TFRecords, which ReadChunk reads. A stream of a plain file may begin at any record that an index
// knows (start_offset).
//
// Threads:  one thread.
// Owns:     the stream and the memory in which a chunk's records lie, up to the next Next().
// Limits:   a record of at most kMaxRecordBytes. Memory grows with the bytes of a record that are
//           there, never with what its length claims, and shrinks again.
// Cost:     both checksums of every TFRecord, in the core's cache; a chunk is at most kPieceBytes
//           of records, or one record; one virtual call a chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "io/file/damage.h"
#include "io/inflate/byte_stream.h"
#include "io/record/byte_window.h"
#include "io/record/record_chunk.h"
#include "io/record/record_format.h"

namespace penstock {

struct RecordStreamOptions {
  std::shared_ptr<const RecordFormat> format = TfrecordFormat();
  OnDamage on_damage = OnDamage::kFail;
  // Where to begin: the plain offset of a record and its ordinal (for messages), as an earlier
  // stream's chunk told them. 0 is the beginning. What lies before is inflated, but not looked at.
  uint64_t start_offset = 0;
  uint64_t start_ordinal = 0;
};

// What a format makes a stream of records of.
struct RecordSource {
  std::unique_ptr<ByteStream> bytes;
  uint64_t plain_end = 0;  // how many there are, where that is known
  Compression compression = Compression::kNone;
  OnDamage on_damage = OnDamage::kFail;
  uint64_t start_ordinal = 0;
};

// Records without checksums would not notice compressed bytes: DataLoss where a file that is
// declared to be plain begins as gzip or zstd do.
absl::Status CheckIsPlain(RandomAccessFile& file);

// A format derives one, which finds the records.
class RecordStream {
 public:
  // InvalidArgument for sizes out of range; DataLoss where the file is declared wrongly, which for
  // plain files of formats without checksums means: where it begins like gzip or zstd.
  static absl::StatusOr<std::unique_ptr<RecordStream>> Open(std::shared_ptr<RandomAccessFile> file,
                                                            Compression compression,
                                                            const RecordStreamOptions& options);
  virtual ~RecordStream() = default;

  // The next records. The chunk's error has its address (file, record, offsets); it is sticky. The
  // last chunk says end_of_file and may be empty; so may one with damage. A record is late only in
  // a plain file of a format that finds long ones without reading them (tar).
  void Next(RecordChunk* chunk);

  // The ordinal of the next chunk's first record: skipped ones are not counted.
  uint64_t ordinal() const { return ordinal_; }

  // The memory that the stream's plain bytes take at present.
  size_t window_bytes() const { return window_.capacity(); }

 protected:
  explicit RecordStream(RecordSource source);

  // Appends records from taken() on to the chunk, or damage, Take()s what they lie in, and says
  // when there are no more: by End(), Fail() or EndOfStream(). More bytes move the window (Ensure,
  // Drop), which the records of a chunk must not see: so only while taken() is 0. A call that has
  // taken kPieceBytes returns.
  virtual void NextRecords(RecordChunk* chunk) = 0;

  ByteWindow& window() { return window_; }
  // Bytes at the window's beginning that the chunk's records lie in.
  size_t taken() const { return taken_; }
  void Take(size_t bytes) { taken_ += bytes; }
  bool is_plain() const { return compression_ == Compression::kNone; }
  bool skips_damage() const { return on_damage_ == OnDamage::kSkipRecord; }
  // Whether a record is to be checked before it is told of, as far as it can be.
  bool verifies_damage() const { return on_damage_ != OnDamage::kFail; }
  bool failed() const { return !error_.ok(); }

  // `offset` begins what is bad.
  void Fail(RecordChunk* chunk, uint64_t offset, DamageReason reason, const absl::Status& status);
  // The stream of bytes failed where `offset` begins what is lost with it.
  void EndOfStream(RecordChunk* chunk, uint64_t offset, const absl::Status& status);
  void End(RecordChunk* chunk);

 private:
  void FailWith(RecordChunk* chunk, uint64_t offset, DamageReason reason,
                const absl::Status& status, const std::string& address);

  ByteWindow window_;
  const Compression compression_;
  const OnDamage on_damage_;
  uint32_t header_bytes_ = 0;
  size_t taken_ = 0;  // by the last chunk
  uint64_t ordinal_;
  uint64_t file_offset_ = 0;
  bool ended_ = false;
  absl::Status error_;
  uint64_t error_offset_ = 0;
  DamageReason error_reason_ = DamageReason::kLengthChecksum;
};

}  // namespace penstock
