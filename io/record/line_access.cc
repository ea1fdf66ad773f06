#include "io/record/line_access.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/record/line_stream.h"
#include "io/record/near_lines.h"
#include "io/record/near_records.h"
#include "io/record/record_chunk.h"
#include "io/record/record_index.h"
#include "io/record/scan_progress.h"

namespace penstock {
namespace {

// Of the file at a time: more than a call costs, and no more than a core's cache holds.
constexpr size_t kPieceBytes = 256 << 10;

// Finds the lines of bytes that come piece by piece.
class LineScan {
 public:
  LineScan(const RandomAccessFile& file, const IndexOptions& options)
      : file_(file), options_(options), offsets_(0, file.size()) {}

  absl::Status Take(absl::Span<const uint8_t> piece) {
    const uint8_t* at = piece.data();
    const uint8_t* const end = at + piece.size();
    while (const auto* line_end = static_cast<const uint8_t*>(std::memchr(at, '\n', end - at))) {
      offset_ += line_end - at;
      if (absl::Status status = TakeLine(offset_ + 1); !status.ok()) return status;
      ++offset_;
      at = line_end + 1;
      if (at == end) return absl::OkStatus();
    }
    offset_ += end - at;
    // A rest of carriage returns alone is no line.
    has_text_ = has_text_ || std::any_of(at, end, [](uint8_t byte) { return byte != '\r'; });
    return absl::OkStatus();
  }

  absl::StatusOr<FoundRecords> End() {
    if (has_text_) {
      if (absl::Status status = TakeLine(offset_); !status.ok()) return status;
    }
    found_.offsets = offsets_.Finish();
    found_.verified = true;
    return std::move(found_);
  }

 private:
  // The line that began at begin_ ends here: offset_ is behind its text, `next` where the next one
  // begins.
  absl::Status TakeLine(uint64_t next) {
    if (next - begin_ <= kMaxRecordBytes) {
      offsets_.Add(begin_);
      found_.records_end = next;
    } else if (options_.on_damage == OnDamage::kSkipRecord) {
      found_.damage.push_back({begin_, next - begin_, DamageReason::kTooLong});
    } else {
      return absl::DataLossError(absl::StrCat(LongLineMessage(), " (", file_.path(), ", record ",
                                              offsets_.size(), ", offset ", begin_, ")"));
    }
    begin_ = next;
    has_text_ = false;
    return absl::OkStatus();
  }

  const RandomAccessFile& file_;
  const IndexOptions& options_;
  RecordOffsetsBuilder offsets_;
  FoundRecords found_;
  uint64_t begin_ = 0;   // of the line
  uint64_t offset_ = 0;  // of the byte that is looked at next
  bool has_text_ = false;
};

// Has `take` look at all bytes of the file up to `end`.
template <typename Take>
absl::Status ForEachPiece(RandomAccessFile& file, uint64_t end, const Take& take) {
  std::vector<uint8_t> piece(std::min<uint64_t>(kPieceBytes, std::max<uint64_t>(end, 1)));
  for (uint64_t offset = 0; offset < end;) {
    const size_t want = std::min<uint64_t>(piece.size(), end - offset);
    absl::StatusOr<size_t> count = file.ReadAt(offset, absl::MakeSpan(piece.data(), want));
    if (!count.ok()) return count.status();
    if (*count < want) {
      return FileShrunkError(absl::StrCat("the file became shorter than its ", file.size(),
                                          " bytes while it was read (", file.path(), ", offset ",
                                          offset + *count, ")"));
    }
    offset += want;
    if (absl::Status status = take(absl::MakeConstSpan(piece.data(), want), offset); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

class Access final : public RecordAccess, public NearRecords {
 public:
  // Of all formats of lines alike.
  std::string IndexKey() const override { return "text_line"; }
  const RecordShape& shape() const override { return shape_; }

  absl::StatusOr<FoundRecords> Scan(const std::shared_ptr<RandomAccessFile>& file,
                                    const IndexOptions& options) const override {
    if (absl::Status status = CheckIsPlain(*file); !status.ok()) return status;
    LineScan scan(*file, options);
    ScanProgress progress(options);
    const absl::Status status = ForEachPiece(
        *file, file->size(), [&](absl::Span<const uint8_t> piece, uint64_t done) -> absl::Status {
          if (absl::Status taken = scan.Take(piece); !taken.ok()) return taken;
          return progress.At(done);
        });
    if (!status.ok()) return status;
    return scan.End();
  }

  bool Open(uint8_t* bytes, uint64_t* length, bool at_end) const override {
    uint64_t size = *length;
    if (size == 0) return false;
    if (bytes[size - 1] == '\n') {
      --size;
    } else if (!at_end) {
      return false;
    }
    // Another end would be one of another line.
    if (size > 0 && std::memchr(bytes, '\n', size) != nullptr) return false;
    if (size > 0 && std::memchr(bytes, '\r', size) != nullptr)
      size = std::remove(bytes, bytes + size, uint8_t{'\r'}) - bytes;
    *length = size;
    return true;
  }

  bool IsAt(RandomAccessFile& file, uint64_t offset, uint64_t length) const override {
    return BeginsLine(file, offset) && RecordAccess::IsAt(file, offset, length);
  }

  uint64_t OrdinalOf(const std::shared_ptr<RandomAccessFile>& file,
                     uint64_t offset) const override {
    uint64_t lines = 0;
    ForEachPiece(*file, std::min(offset, file->size()),
                 [&](absl::Span<const uint8_t> piece, uint64_t) {
                   lines += std::count(piece.begin(), piece.end(), uint8_t{'\n'});
                   return absl::OkStatus();
                 })
        .IgnoreError();
    return lines;
  }

  Cut CutNear(RandomAccessFile& file, uint64_t offset, uint64_t bytes, Take take) const override {
    return CutNearLines(file, offset, bytes, JudgeText, take);
  }

 private:
  static NearLine JudgeText(absl::string_view line, bool has_end, uint32_t* length) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    // They are taken out by who may change the bytes.
    if (line.find('\r') != absl::string_view::npos) return NearLine::kUnusual;
    *length = static_cast<uint32_t>(line.size());
    // A rest of carriage returns alone is no line.
    return has_end || !line.empty() ? NearLine::kRecord : NearLine::kPassedOver;
  }

  const RecordShape shape_ = {};
};

}  // namespace

const RecordAccess& LineAccess() {
  static const auto* const access = new Access;
  return *access;
}

bool BeginsLine(RandomAccessFile& file, uint64_t offset) {
  if (offset == 0) return true;
  uint8_t before = 0;
  const absl::StatusOr<size_t> read = file.ReadAt(offset - 1, {&before, 1});
  return read.ok() && *read == 1 && before == '\n';
}

}  // namespace penstock
