#include "io/parquet/snappy_block.h"

#include <snappy-sinksource.h>
#include <snappy.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

// An element of three bytes gives 64 at most.
constexpr uint64_t kMaxRatio = 22;
// At most 22 times as many come of them: a millisecond.
constexpr size_t kPiece = size_t{64} << 10;

const char* Chars(absl::Span<const uint8_t> bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}

// A block in pieces. It ends when a stop is wanted, as no exception may pass through libsnappy.
class Pieces final : public snappy::Source {
 public:
  explicit Pieces(absl::Span<const uint8_t> block) : left_(block) {}
  size_t Available() const override { return left_.size(); }
  const char* Peek(size_t* length) override {
    *length = IsStopped() ? 0 : std::min(left_.size(), kPiece);
    return Chars(left_);
  }
  void Skip(size_t count) override { left_.remove_prefix(count); }

 private:
  absl::Span<const uint8_t> left_;
};

}  // namespace

absl::Status CheckSnappySize(absl::Span<const uint8_t> block, uint64_t plain_bytes) {
  size_t size = 0;
  if (!snappy::GetUncompressedLength(Chars(block), block.size(), &size))
    return absl::DataLossError("it is no Snappy block");
  if (size != plain_bytes) {
    return absl::DataLossError(
        absl::StrCat("its Snappy block says that it holds ", size, " bytes, not ", plain_bytes));
  }
  if (size / kMaxRatio > block.size()) {
    return absl::DataLossError(absl::StrCat("its Snappy block says that it holds ", size,
                                            " bytes, more than ", block.size(), " can"));
  }
  return absl::OkStatus();
}

absl::Status UnpackSnappyBlock(absl::Span<const uint8_t> block, absl::Span<uint8_t> plain) {
  if (absl::Status status = CheckSnappySize(block, plain.size()); !status.ok()) return status;
  Pieces pieces(block);
  const bool is_whole = snappy::RawUncompress(&pieces, reinterpret_cast<char*>(plain.data()));
  CheckStop();
  if (is_whole) return absl::OkStatus();
  return absl::DataLossError("its Snappy block is damaged, or holds more or fewer bytes");
}

}  // namespace penstock
