#include "io/record/tar_near.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "io/record/record_chunk.h"
#include "io/record/tar_cell.h"
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
    if (head_.is_regular() &&
        (IsOfOpenOne(head_.path, &key, &extension) ||
         (!IsTarMeta(head_.path) && SplitTarPath(head_.path, &key, &extension)))) {
      if (is_open_ && key != key_) {
        if (!EndSample() || at_ >= enough) return false;
      }
      if (!is_open_) {
        begin_ = at_;
        key_.assign(key.data(), key.size());
        texts_ = key_;
        members_.clear();
        is_open_ = true;
      }
      end_ = std::min(end, file_bytes_);
      if (!is_late()) {
        texts_.append(extension.data(), extension.size());
        members_.push_back({at_ + head_.bytes, static_cast<uint32_t>(extension.size()),
                            static_cast<uint32_t>(head_.size)});
      }
    }
    if (is_open_ && end - begin_ > kMaxRecordBytes) return false;
    at_ = end;
    return true;
  }

  // Short for SplitTarPath() of a path that goes on behind the open sample's key without a folder.
  // What begins as the archive's own does is left to IsTarMeta().
  bool IsOfOpenOne(absl::string_view path, absl::string_view* key,
                   absl::string_view* extension) const {
    if (!is_open_ || path.size() <= key_.size() || path[key_.size()] != '.' || path[0] == '_' ||
        path.substr(0, key_.size()) != key_)
      return false;
    *key = path.substr(0, key_.size());
    *extension = path.substr(key_.size() + 1);
    return extension->find('/') == absl::string_view::npos;
  }
  bool is_late() const { return end_ - begin_ > kLateRecordBytes; }

  // Hands the sample on; the head that is looked at is the next one's. False where it is not near.
  bool EndSample() {
    parts_.clear();
    if (!is_late()) {
      if (!piece_.Hold(begin_, end_)) return false;
      WriteTarCellHead(static_cast<uint32_t>(key_.size()), texts_, members_, &cell_head_);
      parts_.emplace_back(reinterpret_cast<const uint8_t*>(cell_head_.data()), cell_head_.size());
      for (const TarCellMember& member : members_)
        parts_.push_back(piece_.From(member.offset).first(member.data_bytes));
    }
    take_(begin_, static_cast<uint32_t>(end_ - begin_), parts_);
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
  // Of one that is not late: the key and all extensions, and where the data is.
  std::string texts_;
  std::vector<TarCellMember> members_;
  std::string cell_head_;
  std::vector<absl::Span<const uint8_t>> parts_;
};

}  // namespace

NearRecords::Cut CutNearTar(RandomAccessFile& file, uint64_t offset, uint64_t bytes,
                            NearRecords::Take take) {
  return Cutter(file, offset, take).Run(offset + bytes);
}

}  // namespace penstock
