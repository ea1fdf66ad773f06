// Mirrors the rows of an image while another function writes it.
#include <algorithm>
#include <cstring>

#include "server/image/turn.h"
#include "server/kernels/mirror.h"

namespace penstock::expr {
namespace {

constexpr size_t kTileBytes = 8192;

class PassOn final : public TileFilter {
 public:
  explicit PassOn(RowOutput& out) : out_(out) {}
  uint8_t* Reserve(size_t bytes) override { return out_.Reserve(bytes); }
  void Commit() override { out_.Commit(); }

 private:
  RowOutput& out_;
};

class MirrorRows final : public TileFilter {
 public:
  MirrorRows(size_t width, size_t pixel_bytes, Arena& scratch, RowOutput& out)
      : width_(width),
        pixel_bytes_(pixel_bytes),
        row_bytes_(width * pixel_bytes),
        scratch_(scratch),
        out_(out) {}

  bool TakeMirrored() override { return maker_mirrors_ = true; }

  uint8_t* Reserve(size_t bytes) override {
    if (maker_mirrors_) return out_.Reserve(bytes);
    reserved_ = bytes;
    if (kept_ + bytes > capacity_) {
      uint8_t* const more = scratch_.Allocate(kept_ + bytes);
      if (kept_ > 0) std::memcpy(more, buffer_, kept_);
      buffer_ = more;
      capacity_ = kept_ + bytes;
    }
    return buffer_ + kept_;
  }

  void Commit() override {
    if (maker_mirrors_) return out_.Commit();
    kept_ += reserved_;
    reserved_ = 0;
    if (row_bytes_ == 0) return;
    const size_t rows = kept_ / row_bytes_;
    const size_t tile_rows = std::max<size_t>(kTileBytes / row_bytes_, 1);
    const uint8_t* from = buffer_;
    for (size_t y = 0; y < rows;) {
      const size_t count = std::min(tile_rows, rows - y);
      uint8_t* to = out_.Reserve(count * row_bytes_);
      for (size_t i = 0; i < count; ++i, ++y, from += row_bytes_, to += row_bytes_) {
        kernels::MirrorPixels(from, width_, pixel_bytes_, to);
      }
      out_.Commit();
    }
    // The beginning of a row waits for the rest of it.
    kept_ -= rows * row_bytes_;
    if (kept_ > 0 && rows > 0) std::memmove(buffer_, from, kept_);
  }

 private:
  const size_t width_;
  const size_t pixel_bytes_;
  const size_t row_bytes_;
  Arena& scratch_;
  RowOutput& out_;
  uint8_t* buffer_ = nullptr;
  size_t capacity_ = 0;
  size_t kept_ = 0;
  size_t reserved_ = 0;
  bool maker_mirrors_ = false;  // the rows come as they are wanted
};

}  // namespace

std::unique_ptr<TileFilter> NewTurnFilter(const Turn& turn, DType dtype, const Shape& image,
                                          Arena& scratch, RowOutput& out) {
  if (!turn.flip_columns) return std::make_unique<PassOn>(out);
  return std::make_unique<MirrorRows>(static_cast<size_t>(image[1]),
                                      static_cast<size_t>(image[2]) * DTypeSize(dtype), scratch,
                                      out);
}

}  // namespace penstock::expr
