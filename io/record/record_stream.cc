#include "io/record/record_stream.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/record/resynchronise.h"
#include "io/record/tfrecord_frame.h"

namespace penstock {
namespace {

absl::Status CheckSize(const char* name, uint64_t value, uint64_t least) {
  if (value >= least && value <= kMaxRecordBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected ", least, " to ", kMaxRecordBytes, ", found ", value));
}

// Plain text and fixed-length records have no checksum that would notice compressed bytes.
absl::Status CheckPlain(RandomAccessFile& file) {
  uint8_t bytes[12];
  absl::StatusOr<size_t> count = file.ReadAt(0, absl::MakeSpan(bytes));
  if (!count.ok()) return count.status();
  const absl::string_view guess = GuessFormat(absl::MakeConstSpan(bytes, *count));
  if (*count < 4 || (guess != "gzip" && guess != "zstd")) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the file is declared to be plain but looks like ", guess,
                                          ": declare its compression (", file.path(),
                                          ", offset 0)"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordStream>> RecordStream::Open(
    std::shared_ptr<RandomAccessFile> file, Compression compression,
    const RecordStreamOptions& options) {
  if (options.format == RecordFormat::kFixedLength) {
    if (auto status = CheckSize("record_bytes", options.record_bytes, 1); !status.ok())
      return status;
    if (auto status = CheckSize("header_bytes", options.header_bytes, 0); !status.ok())
      return status;
    if (auto status = CheckSize("footer_bytes", options.footer_bytes, 0); !status.ok())
      return status;
  }
  if (compression == Compression::kNone && options.format != RecordFormat::kTfrecord) {
    if (absl::Status status = CheckPlain(*file); !status.ok()) return status;
  }
  const uint64_t plain_end = compression == Compression::kNone ? file->size() : ~uint64_t{0};
  absl::StatusOr<std::unique_ptr<ByteStream>> stream = OpenStream(std::move(file), compression);
  if (!stream.ok()) return stream.status();
  auto records = std::unique_ptr<RecordStream>(
      new RecordStream(*std::move(stream), plain_end, compression, options));
  if (absl::Status status = records->window_.Skip(options.start_offset); !status.ok())
    return status;
  return records;
}

RecordStream::RecordStream(std::unique_ptr<ByteStream> stream, uint64_t plain_end,
                           Compression compression, const RecordStreamOptions& options)
    : window_(std::move(stream), plain_end),
      compression_(compression),
      options_(options),
      ordinal_(options.start_ordinal) {}

void RecordStream::Next(RecordChunk* chunk) {
  chunk->records.clear();
  chunk->damage.clear();
  chunk->error = error_;
  chunk->error_offset = error_offset_;
  chunk->error_reason = error_reason_;
  chunk->end_of_file = ended_;
  chunk->next_is_late = false;
  chunk->header_bytes = options_.format == RecordFormat::kTfrecord ? kRecordHeaderBytes : 0;
  chunk->bytes_read = 0;
  window_.Drop(taken_);
  taken_ = 0;
  if (error_.ok() && !ended_) {
    switch (options_.format) {
      case RecordFormat::kTfrecord:
        NextTfrecords(chunk);
        break;
      case RecordFormat::kTextLine:
        NextLines(chunk);
        break;
      case RecordFormat::kFixedLength:
        NextFixedLength(chunk);
        break;
      case RecordFormat::kCsv:
        NextCsv(chunk);
        break;
    }
  }
  ordinal_ += chunk->records.size();
  chunk->bytes = window_.data();
  chunk->buffer_offset = window_.offset();
  chunk->next_offset = window_.offset() + taken_;
  const uint64_t file_offset = window_.stream().file_offset();
  chunk->bytes_read = file_offset - file_offset_;
  file_offset_ = file_offset;
}

void RecordStream::NextTfrecords(RecordChunk* chunk) {
  while (taken_ < ByteWindow::kPieceBytes) {
    const uint8_t* const frame = window_.data() + taken_;
    const uint64_t left = window_.size() - taken_;
    if (left >= kFrameBytes) {
      const uint64_t length = LoadU64(frame);
      if (length <= kMaxRecordBytes && length + kFrameBytes <= left && HeaderHolds(frame) &&
          DataHolds(frame + kRecordHeaderBytes, length)) {
        chunk->records.push_back({window_.offset() + taken_, static_cast<uint32_t>(length), false});
        taken_ += length + kFrameBytes;
        continue;
      }
    }
    // Everything else moves the window, which the records before must not see.
    if (taken_ > 0 || !GatherTfrecord(chunk)) return;
  }
}

bool RecordStream::GatherTfrecord(RecordChunk* chunk) {
  const uint64_t offset = window_.offset();
  absl::Status status = window_.Ensure(kRecordHeaderBytes);
  if (!status.ok()) {
    EndOfStream(chunk, offset, status);
    return false;
  }
  if (window_.size() == 0) {
    End(chunk);
    return false;
  }
  std::optional<DamageReason> reason;
  if (window_.size() < kRecordHeaderBytes) {
    reason = DamageReason::kCutHeader;
  } else {
    reason = CheckHeader(window_.data(), window_.plain_end() - offset);
  }
  if (!reason) {
    const uint64_t length = LoadU64(window_.data());
    status = window_.Ensure(length + kFrameBytes);
    if (!status.ok()) {
      EndOfStream(chunk, offset, status);
      return false;
    }
    if (window_.size() < length + kFrameBytes) {
      reason = DamageReason::kCutRecord;
    } else if (!DataHolds(window_.data() + kRecordHeaderBytes, length)) {
      reason = DamageReason::kDataChecksum;
    } else {
      return true;
    }
  }
  if (options_.on_damage != OnDamage::kSkipRecord) {
    const uint64_t left =
        compression_ == Compression::kNone ? window_.plain_end() - offset : window_.size();
    Fail(chunk, offset, *reason, DescribeDamage(*reason, window_.data(), left, offset == 0), false);
    return false;
  }
  Damage damage;
  status = Resynchronise(window_, *reason, &damage);
  if (!status.ok()) {
    EndOfStream(chunk, offset, status);
    return false;
  }
  chunk->damage.push_back(damage);
  return true;
}

void RecordStream::NextLines(RecordChunk* chunk) {
  size_t searched = 0;  // behind taken_, bytes known to hold no line end
  while (taken_ < ByteWindow::kPieceBytes) {
    const uint8_t* const begin = window_.data() + taken_;
    const uint8_t* const end = window_.data() + window_.size();
    const auto* line_end = static_cast<const uint8_t*>(
        begin + searched == end ? nullptr
                                : std::memchr(begin + searched, '\n', end - begin - searched));
    if (line_end != nullptr) {
      searched = 0;
      if (!TakeLine(chunk, begin, line_end)) return;
      continue;
    }
    // More bytes move the window, which the lines before must not see.
    if (taken_ > 0) return;
    searched = end - begin;
    if (searched > kMaxRecordBytes + 1) return DropLongLine(chunk);
    const absl::Status status = window_.Ensure(searched + 1);
    if (!status.ok()) return EndOfStream(chunk, window_.offset(), status);
    if (window_.size() > searched) continue;
    // The last line, without an end of its own.
    const uint8_t* const last = window_.data() + searched;
    if (std::any_of(window_.data(), last, [](uint8_t byte) { return byte != '\r'; }))
      (void)TakeLine(chunk, window_.data(), last);
    taken_ = window_.size();
    if (error_.ok()) End(chunk);
    return;
  }
}

// The line of [begin, end) is the next one. False when it is too long, and the chunk ends.
bool RecordStream::TakeLine(RecordChunk* chunk, const uint8_t* begin, const uint8_t* end) {
  uint64_t length = end - begin;
  if (end > begin && end[-1] == '\r') --length;
  if (std::memchr(begin, '\r', length) != nullptr) {
    // They may be anywhere: what is left moves together, in the window's own memory.
    uint8_t* const line = const_cast<uint8_t*>(begin);
    length = std::remove(line, line + length, uint8_t{'\r'}) - line;
  }
  if (length > kMaxRecordBytes) {
    if (taken_ == 0) DropLongLine(chunk);
    return false;
  }
  chunk->records.push_back({window_.offset() + taken_, static_cast<uint32_t>(length), false});
  taken_ = std::min<size_t>(end - window_.data() + 1, window_.size());
  return true;
}

void RecordStream::DropLongLine(RecordChunk* chunk) {
  const uint64_t offset = window_.offset();
  if (options_.on_damage != OnDamage::kSkipRecord) {
    return Fail(chunk, offset, DamageReason::kTooLong,
                absl::DataLossError(
                    absl::StrCat("line longer than limit: more than ", kMaxRecordBytes, " bytes")),
                false);
  }
  while (true) {
    const void* line_end =
        window_.size() == 0 ? nullptr : std::memchr(window_.data(), '\n', window_.size());
    if (line_end != nullptr) {
      window_.Drop(static_cast<const uint8_t*>(line_end) - window_.data() + 1);
      break;
    }
    window_.Drop(window_.size());
    const absl::Status status = window_.Ensure(1);
    if (!status.ok()) return EndOfStream(chunk, offset, status);
    if (window_.size() == 0) break;
  }
  chunk->damage.push_back({offset, window_.offset() - offset, DamageReason::kTooLong});
}

void RecordStream::NextFixedLength(RecordChunk* chunk) {
  const uint64_t record_bytes = options_.record_bytes;
  const uint64_t footer_bytes = options_.footer_bytes;
  if (window_.offset() < options_.header_bytes) {
    const uint64_t missing = options_.header_bytes - window_.offset();
    const absl::Status status = window_.Ensure(missing);
    if (!status.ok()) return EndOfStream(chunk, window_.offset(), status);
    if (window_.size() < missing) {
      const uint64_t size = window_.offset() + window_.size();
      // A file of no bytes has no records, and that is all.
      if (size == 0) return End(chunk);
      if (options_.on_damage != OnDamage::kSkipRecord) {
        return Fail(chunk, 0, DamageReason::kPartialRecord,
                    absl::DataLossError(absl::StrCat("the file is shorter than its header: ", size,
                                                     " < ", options_.header_bytes, " bytes")),
                    false);
      }
      chunk->damage.push_back({0, size, DamageReason::kPartialRecord});
      window_.Drop(window_.size());
      return End(chunk);
    }
    window_.Drop(missing);
  }
  // A record is one only when the footer's bytes are behind it.
  while (taken_ < ByteWindow::kPieceBytes) {
    const uint64_t need = record_bytes + footer_bytes;
    if (window_.size() - taken_ >= need) {
      chunk->records.push_back(
          {window_.offset() + taken_, static_cast<uint32_t>(record_bytes), false});
      taken_ += record_bytes;
      continue;
    }
    if (taken_ > 0) return;
    const uint64_t offset = window_.offset();
    const absl::Status status = window_.Ensure(need);
    if (!status.ok()) return EndOfStream(chunk, offset, status);
    if (window_.size() >= need) continue;
    const uint64_t rest = window_.size();
    if (rest != footer_bytes && offset + rest > 0) {
      if (options_.on_damage != OnDamage::kSkipRecord) {
        return Fail(
            chunk, offset, DamageReason::kPartialRecord,
            absl::DataLossError(absl::StrCat(
                "the file does not end in a whole record: ", rest, " bytes are left, expected ",
                record_bytes, " of a record and ", footer_bytes, " of the footer, or the footer")),
            false);
      }
      chunk->damage.push_back({offset, rest, DamageReason::kPartialRecord});
    }
    window_.Drop(rest);
    return End(chunk);
  }
}

void RecordStream::EndOfStream(RecordChunk* chunk, uint64_t offset, const absl::Status& status) {
  const bool lost =
      compression_ != Compression::kNone && absl::IsDataLoss(status) && !IsFileShrunk(status);
  if (!lost || options_.on_damage != OnDamage::kSkipRecord)
    return Fail(chunk, offset, DamageReason::kCompressedData, status, true);
  chunk->damage.push_back({offset, kDamageToTheEnd, DamageReason::kCompressedData});
  window_.Drop(window_.size());
  End(chunk);
}

void RecordStream::Fail(RecordChunk* chunk, uint64_t offset, DamageReason reason,
                        const absl::Status& status, bool has_address) {
  const uint64_t record = ordinal_ + chunk->records.size();
  std::string address;
  if (has_address) {
    address = absl::StrCat(", in record ", record);
  } else if (compression_ == Compression::kNone) {
    address =
        absl::StrCat(" (", window_.stream().path(), ", record ", record, ", offset ", offset, ")");
  } else {
    address =
        absl::StrCat(" (", window_.stream().path(), ", record ", record, ", plain offset ", offset,
                     ", compressed offset at most ", window_.stream().file_offset(), ")");
  }
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
