#include "io/record/tar_scan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "io/record/record_chunk.h"
#include "io/record/tar_head.h"

namespace penstock {
namespace {

// Between two looks at whether the scan is still wanted.
constexpr uint64_t kMembersBetweenLooks = 256;

// The bytes of a file at one place after another, each behind the one before. A call of the kernel
// costs as much as copying some kilobytes; where one would be made for what lies just behind what
// was read, more is read at a time.
class HeadBytes {
 public:
  explicit HeadBytes(RandomAccessFile& file) : file_(file) {}

  // From `at` on, at least `bytes` of them, or fewer where the file ends, or cannot be read.
  absl::Span<const uint8_t> From(uint64_t at, uint64_t bytes) {
    const uint64_t end = begin_ + size_;
    if (at < begin_ || at + bytes > end) {
      next_bytes_ = at < end + kShortWay ? std::min(2 * next_bytes_, kMaxBytes)
                                         : std::clamp(used_, kMinBytes, kMaxBytes);
      const uint64_t wanted = std::min(std::max(bytes, next_bytes_), file_.size() - at);
      if (buffer_.size() < wanted) buffer_.resize(wanted);
      const absl::StatusOr<size_t> read = file_.ReadAt(at, {buffer_.data(), wanted});
      begin_ = at;
      size_ = read.ok() ? *read : 0;
      used_ = 0;
    }
    used_ = std::max(used_, at + bytes - begin_);
    return absl::MakeConstSpan(buffer_.data(), size_).subspan(at - begin_);
  }

 private:
  static constexpr uint64_t kMinBytes = 2 << 10;
  static constexpr uint64_t kMaxBytes = 64 << 10;
  static constexpr uint64_t kShortWay = 1 << 10;

  RandomAccessFile& file_;
  std::vector<uint8_t> buffer_;
  uint64_t begin_ = 0;
  uint64_t size_ = 0;
  uint64_t used_ = 0;
  uint64_t next_bytes_ = kMinBytes;
};

bool IsZeros(absl::Span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

// The members of one sample follow each other.
class Samples {
 public:
  explicit Samples(uint64_t file_bytes)
      : file_bytes_(file_bytes), offsets_(/*shift=*/9, file_bytes) {}

  bool is_open() const { return is_open_; }
  // What the sample takes, if it goes on up to there.
  uint64_t BytesUntil(uint64_t end) const { return end - begin_; }
  bool IsOf(absl::string_view key) const { return is_open_ && key == key_; }

  void Begin(uint64_t at, absl::string_view key) {
    begin_ = at;
    key_.assign(key.data(), key.size());
    is_open_ = true;
  }
  void GoOn(uint64_t end) { end_ = std::min(end, file_bytes_); }
  void End() {
    if (is_open_) offsets_.Add(begin_);
    is_open_ = false;
  }

  FoundRecords Finish() {
    End();
    FoundRecords found;
    found.offsets = offsets_.Finish();
    found.records_end = end_;
    found.verified = true;
    return found;
  }

 private:
  const uint64_t file_bytes_;
  RecordOffsetsBuilder offsets_;
  bool is_open_ = false;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;  // of the last member
  std::string key_;
};

}  // namespace

absl::StatusOr<std::optional<FoundRecords>> ScanSoundTar(RandomAccessFile& file,
                                                         ScanProgress& progress) {
  Samples samples(file.size());
  TarHead head;
  HeadBytes heads(file);
  uint64_t members = 0;
  for (uint64_t at = 0; at < file.size(); ++members) {
    if (members % kMembersBetweenLooks == 0) {
      if (absl::Status status = progress.At(at); !status.ok()) return status;
    }
    const uint64_t left = file.size() - at;
    absl::Span<const uint8_t> bytes = heads.From(at, kTarBlockBytes);
    TarHead::Found found = ReadTarHead(bytes, &head);
    // What stands in front of a header that needs more room says how much more.
    while (found == TarHead::Found::kNeedsMore && bytes.size() < head.bytes && head.bytes <= left) {
      const uint64_t wanted = head.bytes;
      bytes = heads.From(at, wanted);
      if (bytes.size() < wanted) return std::nullopt;
      found = ReadTarHead(bytes, &head);
    }
    // Some programs leave out the zeros at the end, or have fewer.
    if (found == TarHead::Found::kEnd ||
        (found == TarHead::Found::kNeedsMore && bytes.size() == left && IsZeros(bytes)))
      break;
    if (found != TarHead::Found::kMember || head.bytes + head.size > left) return std::nullopt;
    const uint64_t end = at + head.bytes + TarPadded(head.size);
    absl::string_view key, extension;
    if (head.is_regular() && !IsTarMeta(head.path) && SplitTarPath(head.path, &key, &extension)) {
      if (!samples.IsOf(key)) {
        samples.End();
        samples.Begin(at, key);
      }
      if (samples.BytesUntil(end) > kMaxRecordBytes) return std::nullopt;
      samples.GoOn(end);
    } else if (samples.is_open() && samples.BytesUntil(end) > kMaxRecordBytes) {
      samples.End();
    }
    at = end;
  }
  return samples.Finish();
}

}  // namespace penstock
