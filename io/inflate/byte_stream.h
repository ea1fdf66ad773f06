// The plain bytes of a file, in order, whatever it is compressed by.
//
// Threads:  one stream belongs to one thread at a time; any number of streams may read one file.
// Owns:     a share of the file, one piece of compressed input, and the decompressor's state.
// Limits:   constant memory: 90 KiB for gzip and zlib, for zstd its window besides (at most
//           128 MiB, what zstd itself accepts). There is no limit on how much comes out: whoever
//           gathers it into records has one (kMaxRecordBytes).
// Cost:     gzip and zlib are inflated straight into the caller's memory (inflater.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/file.h"

namespace penstock {

enum class Compression : uint8_t { kNone, kGzip, kZlib, kZstd };

// The name in specs and commands: "" or "NONE", "GZIP", "ZLIB", "ZSTD".
absl::StatusOr<Compression> CompressionFromName(absl::string_view name);
const char* CompressionName(Compression compression);

class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Puts the next bytes into `out`, one at least, and returns how many. Behind the last one it
  // returns 0 at the end, else the error; both are sticky. So the bytes before an error are all
  // given out. What has not been verified yet by a trailer behind it may be given out too.
  // REQUIRES: `out` has room; in front of it lies what came out last, history_bytes() of it, or all
  // if it is less.
  virtual absl::StatusOr<size_t> Read(absl::Span<uint8_t> out) = 0;
  // What compressed bytes may refer to. ByteWindow keeps it there.
  virtual size_t history_bytes() const { return 0; }

  // Passes over at most `bytes` of the next ones if that takes no reading, and tells how many.
  virtual uint64_t SkipUnread(uint64_t bytes) { return 0; }

  // How many bytes came out, and from how many of the file's.
  virtual uint64_t plain_offset() const = 0;
  virtual uint64_t file_offset() const = 0;
  virtual const std::string& path() const = 0;
};

inline constexpr size_t kCompressedPieceBytes = 32 << 10;

// A file that does not begin as its declared compression does is refused, with what it looks like;
// one of no bytes at all is an empty stream whatever is declared. Members of gzip, streams of zlib
// and frames of zstd that follow each other are joined; zero bytes behind the last one are padding,
// but of zstd, as its own program has it.
// `piece_bytes`: how much is read from the file at a time (tests make it small; at least 16).
absl::StatusOr<std::unique_ptr<ByteStream>> OpenStream(std::shared_ptr<RandomAccessFile> file,
                                                       Compression compression,
                                                       size_t piece_bytes = kCompressedPieceBytes);

// What a file that begins with these bytes most likely is: "gzip", "zlib", "zstd", "plain
// TFRecord", or empty. Twelve bytes are enough.
const char* GuessFormat(absl::Span<const uint8_t> beginning);

}  // namespace penstock
