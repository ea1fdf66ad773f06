// Looks for bytes on which the gzip and zlib reader differs from zlib, or does what it must not.
// The first byte chooses the format and the sizes of the pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <zlib.h>

#include "io/inflate/byte_stream.h"
#include "tests/support/memory_file.h"
#include "tests/support/stream_pieces.h"

namespace {

using namespace penstock;

constexpr size_t kPlainBytesMax = 1 << 20;

struct Plain {
  std::string bytes;
  bool sound = true;
};

Plain ByPenstock(const std::string& file, bool gzip, size_t piece_bytes, size_t read_bytes) {
  Plain plain;
  auto stream =
      OpenStream(test::InMemory(file), gzip ? Compression::kGzip : Compression::kZlib, piece_bytes);
  plain.sound = stream.ok();
  if (!plain.sound) return plain;
  test::StreamPieces pieces(*std::move(stream));
  while (plain.bytes.size() <= kPlainBytesMax) {
    const auto piece = pieces.Read(read_bytes);
    plain.sound = piece.ok();
    if (!piece.ok() || piece->empty()) break;
    plain.bytes.append(piece->data(), piece->size());
  }
  return plain;
}

// Members until the file ends.
Plain ByZlib(const std::string& file, bool gzip) {
  Plain plain;
  z_stream stream = {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));
  stream.avail_in = static_cast<uInt>(file.size());
  while (plain.sound && stream.avail_in > 0 && plain.bytes.size() <= kPlainBytesMax) {
    if (inflateInit2(&stream, gzip ? 31 : 15) != Z_OK) std::abort();
    int result = Z_OK;
    while (result == Z_OK && plain.bytes.size() <= kPlainBytesMax) {
      char out[4096];
      stream.next_out = reinterpret_cast<Bytef*>(out);
      stream.avail_out = sizeof(out);
      result = inflate(&stream, Z_NO_FLUSH);
      plain.bytes.append(out, sizeof(out) - stream.avail_out);
    }
    inflateEnd(&stream);
    plain.sound = result == Z_STREAM_END || result == Z_OK;
  }
  return plain;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const bool gzip = (data[0] & 1) != 0;
  const std::string file(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece_bytes = 16 + (data[0] >> 1 & 7) * 13;
  const size_t read_bytes = data[0] >> 4 == 0 ? 1 : (data[0] >> 4) * 5000;
  const Plain ours = ByPenstock(file, gzip, piece_bytes, read_bytes);
  const Plain theirs = ByZlib(file, gzip);
  if (ours.bytes.size() > kPlainBytesMax || theirs.bytes.size() > kPlainBytesMax) return 0;
  // Of a bad file, too, what stands in front of the damage.
  if (ours.bytes != theirs.bytes || ours.sound != theirs.sound) std::abort();
  return 0;
}
