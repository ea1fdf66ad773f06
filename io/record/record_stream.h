// The records of a stream, in order: compressed TFRecords, and text lines and fixed-length records
// whether compressed or not. (Plain TFRecords are read out of order by ReadChunk.)
//
// Threads:  one thread.
// Owns:     the stream and the memory in which a chunk's records lie, up to the next Next().
// Limits:   a record of at most kMaxRecordBytes. Memory grows with the bytes of a record that are
//           there, never with what its length claims, and shrinks again.
// Cost:     both checksums of every TFRecord, in the core's cache; a chunk is at most kPieceBytes of
//           records, or one record.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "io/file/damage.h"
#include "io/inflate/byte_stream.h"
#include "io/record/byte_window.h"
#include "io/record/record_chunk.h"

namespace penstock {

enum class RecordFormat : uint8_t {
  kTfrecord,
  // Lines without their ends, "\n" or "\r\n". A last line needs none, and an end makes no empty line
  // behind it. As in tf.data, a "\r" elsewhere is dropped too.
  kTextLine,
  // header_bytes, then records of record_bytes, then footer_bytes.
  kFixedLength,
  // Records of comma-separated values: lines, whose ends may be "\n", "\r\n" or "\r" and, where fields may stand in quotation marks,
  // are no ends inside of them. A record is its bytes as they stand, without its end.
  kCsv,
};

struct RecordStreamOptions {
  RecordFormat format = RecordFormat::kTfrecord;
  OnDamage on_damage = OnDamage::kFail;
  uint64_t record_bytes = 0;  // kFixedLength: 1 to kMaxRecordBytes
  uint64_t header_bytes = 0;  // at most kMaxRecordBytes, as the footer
  uint64_t footer_bytes = 0;
  // kCsv
  char field_delim = ',';
  bool uses_quotes = true;
  bool skips_header = false;  // the first record
  // Where to begin: the plain offset of a record and its ordinal (for messages), as an earlier
  // stream's chunk told them. 0 is the beginning. What lies before is inflated, but not looked at.
  uint64_t start_offset = 0;
  uint64_t start_ordinal = 0;
};

class RecordStream {
 public:
  // InvalidArgument for sizes out of range; DataLoss where the file is declared wrongly, which for
  // plain text and fixed-length records means: where it begins like gzip or zstd.
  static absl::StatusOr<std::unique_ptr<RecordStream>> Open(std::shared_ptr<RandomAccessFile> file,
                                                            Compression compression,
                                                            const RecordStreamOptions& options);

  // The next records. The chunk's error has its address (file, record, offsets); it is sticky. The
  // last chunk says end_of_file and may be empty; so may one with damage. No record is ever late.
  void Next(RecordChunk* chunk);

  // The ordinal of the next chunk's first record: skipped ones are not counted.
  uint64_t ordinal() const { return ordinal_; }

  // The memory that the stream's plain bytes take at present.
  size_t window_bytes() const { return window_.capacity(); }

 private:
  RecordStream(std::unique_ptr<ByteStream> stream, uint64_t plain_end, Compression compression,
               const RecordStreamOptions& options);

  void NextTfrecords(RecordChunk* chunk);
  void NextLines(RecordChunk* chunk);
  void NextFixedLength(RecordChunk* chunk);
  void NextCsv(RecordChunk* chunk);
  struct CsvEnd {
    size_t length = 0;
    size_t ends = 0;  // bytes of what ends the record
    bool in_quotes = false;
  };
  bool FindCsv(RecordChunk* chunk, CsvEnd* end);
  bool DropHeader(RecordChunk* chunk);
  bool TakeLine(RecordChunk* chunk, const uint8_t* begin, const uint8_t* end);

  // Looks at the frame at the window's beginning, which is bad or not yet whole.
  bool GatherTfrecord(RecordChunk* chunk);
  void DropLongLine(RecordChunk* chunk);
  // The stream failed where `offset` begins what is lost with it.
  void EndOfStream(RecordChunk* chunk, uint64_t offset, const absl::Status& status);
  void Fail(RecordChunk* chunk, uint64_t offset, DamageReason reason, const absl::Status& status,
            bool has_address);
  void End(RecordChunk* chunk);

  ByteWindow window_;
  const Compression compression_;
  const RecordStreamOptions options_;
  size_t taken_ = 0;  // bytes at the window's beginning that the last chunk refers to
  uint64_t ordinal_;
  uint64_t file_offset_ = 0;
  bool ended_ = false;
  absl::Status error_;
  uint64_t error_offset_ = 0;
  DamageReason error_reason_ = DamageReason::kLengthChecksum;
};

}  // namespace penstock
