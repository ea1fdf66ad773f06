// Compressed bytes for tests, made by zlib and libzstd: not by what is tested.
#pragma once

#include <string>

#include <zlib.h>
#include <zstd.h>

namespace penstock::test {

// `window_bits` as deflateInit2 takes them: 31 is gzip, 15 is zlib.
inline std::string Deflate(const std::string& plain, int window_bits, int level = 6,
                           int strategy = Z_DEFAULT_STRATEGY) {
  z_stream stream = {};
  deflateInit2(&stream, level, Z_DEFLATED, window_bits, 8, strategy);
  std::string out(deflateBound(&stream, plain.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string Gzip(const std::string& plain, int level = 6) {
  return Deflate(plain, 31, level);
}
inline std::string Zlib(const std::string& plain, int level = 6) {
  return Deflate(plain, 15, level);
}

// With the checksum of the plain bytes, as the zstd program writes it.
inline std::string Zstd(const std::string& plain) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(plain.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), plain.data(), plain.size()));
  ZSTD_freeCCtx(context);
  return out;
}

}  // namespace penstock::test
