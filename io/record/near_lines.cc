#include "io/record/near_lines.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "io/inflate/byte_stream.h"
#include "io/record/record_chunk.h"

namespace penstock {
namespace {

// Asked for at a time: a question costs some 100 ns.
constexpr uint64_t kPieceBytes = 256 << 10;

// Where a file of lines begins so, its stream says that it is declared wrongly.
bool LooksCompressed(absl::Span<const uint8_t> begin) {
  constexpr size_t kLookedAt = 12, kLeast = 4;
  const absl::string_view guess = GuessFormat(begin.subspan(0, kLookedAt));
  return begin.size() >= kLeast && (guess == "gzip" || guess == "zstd");
}

// The bytes of a file from a line's beginning on.
class LineBytes {
 public:
  LineBytes(RandomAccessFile& file, uint64_t at) : file_(file), at_(at) {}

  uint64_t at() const { return at_; }
  absl::Span<const uint8_t> bytes() const { return bytes_; }
  bool are_all() const { return at_ + bytes_.size() == file_.size(); }

  // More of them; false where they are not near.
  bool Grow() {
    const size_t have = bytes_.size();
    bytes_ = file_.Near(at_, std::max<uint64_t>(kPieceBytes, uint64_t{2} * have));
    return bytes_.size() > have;
  }
  // Goes on behind so many of them.
  void PassOver(size_t bytes) {
    bytes_.remove_prefix(bytes);
    at_ += bytes;
  }

 private:
  RandomAccessFile& file_;
  uint64_t at_;
  absl::Span<const uint8_t> bytes_;
};

// Has the line and its end be at hand. False: it is not near, or too long. `*length`: without its
// end.
bool FindLine(LineBytes& line, size_t* length, bool* has_end) {
  size_t searched = 0;
  while (true) {
    const absl::Span<const uint8_t> bytes = line.bytes();
    const void* const end = searched == bytes.size() ? nullptr
                                                     : std::memchr(bytes.data() + searched, '\n',
                                                                   bytes.size() - searched);
    *has_end = end != nullptr;
    *length = *has_end ? static_cast<const uint8_t*>(end) - bytes.data() : bytes.size();
    if (*length >= kMaxRecordBytes) return false;
    if (*has_end || line.are_all()) return true;
    searched = bytes.size();
    if (!line.Grow()) return false;
  }
}

}  // namespace

NearRecords::Cut CutNearLines(RandomAccessFile& file, uint64_t offset, uint64_t bytes,
                              JudgeLine judge, NearRecords::Take take) {
  LineBytes line(file, offset);
  if (offset == 0 && (!line.Grow() || LooksCompressed(line.bytes()))) return {};
  const uint64_t enough = std::min(offset + bytes, file.size());
  size_t found = 0;
  bool has_end = false;
  while (line.at() < enough && FindLine(line, &found, &has_end)) {
    const uint8_t* const data = line.bytes().data();
    auto length = static_cast<uint32_t>(found);
    const NearLine what = judge({reinterpret_cast<const char*>(data), length}, has_end, &length);
    if (what == NearLine::kUnusual) break;
    const size_t whole = found + (has_end ? 1 : 0);
    if (what == NearLine::kRecord) {
      const bool is_late = length > kLateRecordBytes;
      const absl::Span<const uint8_t> part(data, length);
      if (is_late) {
        take(line.at(), static_cast<uint32_t>(whole), {});
      } else {
        take(line.at(), length, {&part, 1});
      }
    }
    line.PassOver(whole);
  }
  return {line.at(), line.at() == file.size()};
}

}  // namespace penstock
