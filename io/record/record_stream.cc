#include "io/record/record_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {

absl::Status CheckIsPlain(RandomAccessFile& file) {
  uint8_t bytes[12];
  absl::StatusOr<size_t> count = file.ReadAt(0, absl::MakeSpan(bytes));
  if (!count.ok()) return count.status();
  const absl::string_view guess = GuessFormat(absl::MakeConstSpan(bytes, *count));
  if (*count < 4 || (guess != "gzip" && guess != "zstd")) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the file is declared to be plain but looks like ", guess,
                                          ": declare its compression (", file.path(),
                                          ", offset 0)"));
}

absl::StatusOr<std::unique_ptr<RecordStream>> RecordStream::Open(
    std::shared_ptr<RandomAccessFile> file, Compression compression,
    const RecordStreamOptions& options) {
  const RecordFormat& format = *options.format;
  if (absl::Status status = format.Check(); !status.ok()) return status;
  if (compression == Compression::kNone && !format.has_checksums()) {
    if (absl::Status status = CheckIsPlain(*file); !status.ok()) return status;
  }
  const uint64_t plain_end = compression == Compression::kNone ? file->size() : ~uint64_t{0};
  absl::StatusOr<std::unique_ptr<ByteStream>> bytes = OpenStream(std::move(file), compression);
  if (!bytes.ok()) return bytes.status();
  std::unique_ptr<RecordStream> records = format.NewStream(
      {*std::move(bytes), plain_end, compression, options.on_damage, options.start_ordinal});
  records->header_bytes_ = format.header_bytes();
  if (absl::Status status = records->window_.Skip(options.start_offset); !status.ok())
    return status;
  return records;
}

RecordStream::RecordStream(RecordSource source)
    : window_(std::move(source.bytes), source.plain_end),
      compression_(source.compression),
      on_damage_(source.on_damage),
      ordinal_(source.start_ordinal) {}

void RecordStream::Next(RecordChunk* chunk) {
  chunk->records.clear();
  chunk->damage.clear();
  chunk->error = error_;
  chunk->error_offset = error_offset_;
  chunk->error_reason = error_reason_;
  chunk->end_of_file = ended_;
  chunk->next_is_late = false;
  chunk->header_bytes = header_bytes_;
  chunk->bytes_read = 0;
  window_.Drop(taken_);
  taken_ = 0;
  if (error_.ok() && !ended_) NextRecords(chunk);
  ordinal_ += chunk->records.size();
  chunk->bytes = window_.data();
  chunk->buffer_offset = window_.offset();
  chunk->next_offset = window_.offset() + taken_;
  const uint64_t file_offset = window_.stream().file_offset();
  chunk->bytes_read = file_offset - file_offset_;
  file_offset_ = file_offset;
}

void RecordStream::EndOfStream(RecordChunk* chunk, uint64_t offset, const absl::Status& status) {
  const bool lost = !is_plain() && absl::IsDataLoss(status) && !IsFileShrunk(status);
  if (!lost || !skips_damage()) {
    // The status has the address of the stream's bytes.
    return FailWith(chunk, offset, DamageReason::kCompressedData, status,
                    absl::StrCat(", in record ", ordinal_ + chunk->records.size()));
  }
  chunk->damage.push_back({offset, kDamageToTheEnd, DamageReason::kCompressedData});
  window_.Drop(window_.size());
  End(chunk);
}

void RecordStream::Fail(RecordChunk* chunk, uint64_t offset, DamageReason reason,
                        const absl::Status& status) {
  const uint64_t record = ordinal_ + chunk->records.size();
  const ByteStream& bytes = window_.stream();
  const std::string offsets =
      is_plain() ? absl::StrCat("offset ", offset)
                 : absl::StrCat("plain offset ", offset, ", compressed offset at most ",
                                bytes.file_offset());
  FailWith(chunk, offset, reason, status,
           absl::StrCat(" (", bytes.path(), ", record ", record, ", ", offsets, ")"));
}

void RecordStream::FailWith(RecordChunk* chunk, uint64_t offset, DamageReason reason,
                            const absl::Status& status, const std::string& address) {
  error_ = WithMessage(status, absl::StrCat(status.message(), address));
  error_offset_ = offset;
  error_reason_ = reason;
  chunk->error = error_;
  chunk->error_reason = reason;
  chunk->error_offset = offset;
}

void RecordStream::End(RecordChunk* chunk) {
  ended_ = true;
  chunk->end_of_file = true;
}

}  // namespace penstock
