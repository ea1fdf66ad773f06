#include "io/record/tar_scan.h"

#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <utility>

#include "io/record/record_chunk.h"
#include "io/record/tar_head.h"

namespace penstock {
namespace {

// Between two looks at whether the scan is still wanted.
constexpr uint64_t kMembersBetweenLooks = 4096;

// Has the kernel map the pages that come, many with one call, as long as most of them have a head.
// A fault for each 16 of them costs half as much again.
class PagesAhead {
 public:
  explicit PagesAhead(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}

  void At(uint64_t at) {
    ++heads_;
    if (at < end_) return;
    const bool most_have_one = heads_ * kPage * 4 >= kPieceBytes;
    heads_ = 0;
    end_ = at + kPieceBytes;
    // Older kernels refuse it: then each page is a fault.
    if (!most_have_one) return;
    const auto begin = reinterpret_cast<uintptr_t>(bytes_.data() + at) / kPage * kPage;
    const uintptr_t end =
        reinterpret_cast<uintptr_t>(bytes_.data()) + std::min(end_, bytes_.size());
    madvise(reinterpret_cast<void*>(begin), end - begin, kPopulateRead);
  }

 private:
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kPieceBytes = 1 << 20;
  static constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14

  const absl::Span<const uint8_t> bytes_;
  uint64_t end_ = 0;
  uint64_t heads_ = 0;  // up to there
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

absl::StatusOr<std::optional<FoundRecords>> ScanSoundTar(absl::Span<const uint8_t> bytes,
                                                         ScanProgress& progress) {
  Samples samples(bytes.size());
  TarHead head;
  TarHeadsAhead ahead;
  PagesAhead pages(bytes);
  uint64_t members = 0;
  for (uint64_t at = 0; at < bytes.size(); ++members) {
    if (members % kMembersBetweenLooks == 0) {
      if (absl::Status status = progress.At(at); !status.ok()) return status;
    }
    pages.At(at);
    ahead.At(bytes, at);
    const absl::Span<const uint8_t> rest = bytes.subspan(at);
    const TarHead::Found found = ReadTarHead(rest, &head);
    // Some programs leave out the zeros at the end, or have fewer.
    if (found == TarHead::Found::kEnd || (found == TarHead::Found::kNeedsMore && IsZeros(rest)))
      break;
    if (found != TarHead::Found::kMember || head.bytes + head.size > rest.size())
      return std::nullopt;
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
