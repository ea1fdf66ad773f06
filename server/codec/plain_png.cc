#include "server/codec/plain_png.h"

#include <isa-l.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/byte_order.h"
#include "server/kernels/unfilter.h"

namespace penstock {
namespace {

constexpr size_t kSignatureBytes = 8;
// Length and type in front of a chunk's data, the checksum behind it.
constexpr size_t kHeadBytes = 8;
constexpr size_t kChecksumBytes = 4;
// More than this the inflated data may not be too long without being noticed.
constexpr size_t kExcessBytes = 64;

struct Chunk {
  const uint8_t* type = nullptr;  // the data follows
  uint32_t length = 0;

  bool Is(const char* name) const { return std::memcmp(type, name, 4) == 0; }
  bool IsSound() const {
    return crc32_gzip_refl(0, type, uint64_t{length} + 4) == LoadBig<uint32_t>(type + 4 + length);
  }
};

// The chunk that begins at `*offset`, and moves it behind; false at the end of the file.
bool NextChunk(const uint8_t* file, size_t size, size_t* offset, Chunk* chunk) {
  if (size - *offset < kHeadBytes + kChecksumBytes) return false;
  chunk->length = LoadBig<uint32_t>(file + *offset);
  if (chunk->length > size - *offset - kHeadBytes - kChecksumBytes) return false;
  chunk->type = file + *offset + 4;
  *offset += kHeadBytes + chunk->length + kChecksumBytes;
  return true;
}

// Whether a zlib stream of `bytes` begins so that ISA-L inflates it as zlib does: of the full
// window, or of a smaller one that holds all of it, as libpng writes small images. What reaches
// farther back zlib refuses, and ISA-L does not notice.
bool IsPlainStream(const uint8_t* head, size_t bytes) {
  const int window_bits = (head[0] >> 4) + 8;
  return (head[0] & 0x0f) == 8 && window_bits <= 15 &&
         (window_bits == 15 || bytes <= size_t{1} << window_bits) && (head[1] & 0x20) == 0 &&
         (head[0] * 256 + head[1]) % 31 == 0;
}

// What may stand behind the image without libpng looking at it.
bool IsPassedOver(const Chunk& chunk) {
  return chunk.Is("tEXt") || chunk.Is("zTXt") || chunk.Is("iTXt") || chunk.Is("eXIf");
}

// What an image is inflated by and into.
struct Inflated {
  inflate_state state;
  std::unique_ptr<uint8_t[]> rows;
};

// All image data of the file, which must be `bytes` of them.
bool Inflate(const uint8_t* file, size_t size, size_t bytes, Inflated* inflated) {
  size_t offset = kSignatureBytes;
  Chunk chunk;
  do {
    if (!NextChunk(file, size, &offset, &chunk)) return false;
  } while (!chunk.Is("IDAT"));
  if (chunk.length < 2 || !IsPlainStream(chunk.type + 4, bytes)) return false;
  inflate_state& state = inflated->state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_ZLIB_NO_HDR_VER;
  state.next_out = inflated->rows.get();
  state.avail_out = static_cast<uint32_t>(bytes + kExcessBytes);
  uint32_t passed = 2;
  while (chunk.Is("IDAT")) {
    if (!chunk.IsSound()) return false;
    state.next_in = const_cast<uint8_t*>(chunk.type) + 4 + passed;
    state.avail_in = chunk.length - passed;
    passed = 0;
    if (state.avail_in > 0 && isal_inflate(&state) != ISAL_DECOMP_OK) return false;
    if (state.avail_in > 0) return false;  // more of it than the image has
    if (!NextChunk(file, size, &offset, &chunk)) return false;
  }
  if (state.block_state != ISAL_BLOCK_FINISH || state.total_out != bytes) return false;
  while (IsPassedOver(chunk)) {
    if (!NextChunk(file, size, &offset, &chunk)) return false;
  }
  return chunk.Is("IEND") && chunk.length == 0 && chunk.IsSound();
}

}  // namespace

bool DecodePlainPng(const uint8_t* file, size_t size, int height, size_t row_bytes, int pixel_bytes,
                    uint8_t* pixels) {
  const size_t line = row_bytes + 1;  // the filter's number, then the row
  const size_t bytes = line * static_cast<size_t>(height);
  // Uninitialised: every byte that is read has been inflated, but for the excess.
  const auto inflated = std::make_unique_for_overwrite<Inflated>();
  inflated->rows = std::make_unique_for_overwrite<uint8_t[]>(bytes + kExcessBytes);
  if (!Inflate(file, size, bytes, inflated.get())) return false;
  std::memset(inflated->rows.get() + bytes, 0, kExcessBytes);
  const std::vector<uint8_t> zeros(row_bytes + kernels::kUnfilterPadding);
  const uint8_t* above = zeros.data();
  const uint8_t* from = inflated->rows.get();
  for (int y = 0; y < height; ++y, from += line, pixels += row_bytes) {
    if (*from >= kernels::kPngFilters) return false;
    kernels::UnfilterRow(*from, pixel_bytes, from + 1, above, row_bytes, pixels);
    above = pixels;
  }
  return true;
}

}  // namespace penstock
