#include "io/record/tar_near.h"

#include <algorithm>
#include <string>

#include "absl/types/span.h"
#include "io/record/record_chunk.h"
#include "io/record/tar_head.h"

namespace penstock {
namespace {

// Asked for at a time: a question costs some 100 ns.
constexpr uint64_t kPieceBytes = 256 << 10;

// A piece of the file's bytes.
class Piece {
 public:
  explicit Piece(RandomAccessFile& file) : file_(file) {}

  // Has the piece hold [begin, end). False where that is not near.
  bool Hold(uint64_t begin, uint64_t end) {
    if (begin >= offset_ && end <= offset_ + bytes_.size()) return true;
    ahead_ = {};
    offset_ = begin;
    bytes_ = file_.Near(begin, std::max(end - begin, kPieceBytes));
    return bytes_.size() >= end - begin;
  }
  // REQUIRES: it holds the byte there.
  absl::Span<const uint8_t> From(uint64_t at) const { return bytes_.subspan(at - offset_); }
  void LookAhead(uint64_t at) { ahead_.At(bytes_, at - offset_); }

 private:
  RandomAccessFile& file_;
  uint64_t offset_ = 0;
  absl::Span<const uint8_t> bytes_;
  TarHeadsAhead ahead_;
};

// The members of a sample follow each other.
class Cutter {
 public:
  Cutter(RandomAccessFile& file, uint64_t offset, NearRecords::Take take)
      : file_bytes_(file.size()), take_(take), piece_(file), at_(offset), next_(offset) {}

  NearRecords::Cut Run(uint64_t enough) {
    while (is_open_ || at_ < enough) {
      const TarHead::Found found = ReadHead();
      if (found == TarHead::Found::kEnd && (!is_open_ || EndSample())) return {at_, true};
      if (found != TarHead::Found::kMember || !TakeMember(enough)) break;
    }
    // A sample that is open may go on.
    return {is_open_ ? next_ : at_, false};
  }

 private:
  // kNeedsMore: it is not near, or the file ends.
  TarHead::Found ReadHead() {
    // Of a sample that is short so far, all must lie in one piece.
    const uint64_t from = is_open_ && at_ - begin_ <= kLateRecordBytes ? begin_ : at_;
    uint64_t wanted = kTarBlockBytes;
    while (true) {
      const uint64_t end = at_ + wanted;
      if (end > file_bytes_ || !piece_.Hold(from, end)) return TarHead::Found::kNeedsMore;
      piece_.LookAhead(at_);
      const TarHead::Found found = ReadTarHead(piece_.From(at_), &head_);
      // Bytes that change must not have it ask for the same again and again.
      if (found != TarHead::Found::kNeedsMore || head_.bytes <= wanted) return found;
      wanted = head_.bytes;
    }
  }

  // False: this is as far as it goes.
  bool TakeMember(uint64_t enough) {
    const uint64_t end = at_ + head_.bytes + TarPadded(head_.size);
    if (at_ + head_.bytes + head_.size > file_bytes_) return false;
    absl::string_view key, extension;
    if (head_.is_regular() && !IsTarMeta(head_.path) &&
        SplitTarPath(head_.path, &key, &extension)) {
      if (is_open_ && key != key_) {
        if (!EndSample() || at_ >= enough) return false;
      }
      if (!is_open_) {
        begin_ = at_;
        key_.assign(key.data(), key.size());
        is_open_ = true;
      }
      end_ = std::min(end, file_bytes_);
    }
    if (is_open_ && end - begin_ > kMaxRecordBytes) return false;
    at_ = end;
    return true;
  }

  // Hands the sample on; the head that is looked at is the next one's. False where it is not near.
  bool EndSample() {
    const uint64_t length = end_ - begin_;
    const bool is_late = length > kLateRecordBytes;
    if (!is_late && !piece_.Hold(begin_, end_)) return false;
    take_(begin_, static_cast<uint32_t>(length), is_late ? nullptr : piece_.From(begin_).data());
    is_open_ = false;
    next_ = at_;
    return true;
  }

  const uint64_t file_bytes_;
  const NearRecords::Take take_;
  Piece piece_;
  TarHead head_;
  uint64_t at_;    // of the head that is looked at next
  uint64_t next_;  // where the stream would go on
  bool is_open_ = false;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;  // of its last member
  std::string key_;
};

}  // namespace

NearRecords::Cut CutNearTar(RandomAccessFile& file, uint64_t offset, uint64_t bytes,
                            NearRecords::Take take) {
  return Cutter(file, offset, take).Run(offset + bytes);
}

}  // namespace penstock
