// The plain bytes of a file, in order, whatever it is compressed by.
//
// Threads:  one stream belongs to one thread at a time; any number of streams may read one file.
// Owns:     a share of the file, one piece of compressed input, and the decompressor's state.
// Limits:   constant memory: about 0.15 MiB for gzip and zlib, for zstd its window besides (at most
//           128 MiB, what zstd itself accepts). There is no limit on how much comes out: whoever
//           gathers it into records has one (kMaxRecordBytes).
// Cost:     gzip and zlib are inflated by ISA-L straight into the caller's memory. Each call has it
//           copy up to 96 KiB of history besides, so ask for a hundred KiB or more at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/base/file.h"

namespace penstock {

enum class Compression : uint8_t { kNone, kGzip, kZlib, kZstd };

// The name in specs and commands: "" or "NONE", "GZIP", "ZLIB", "ZSTD".
absl::StatusOr<Compression> CompressionFromName(absl::string_view name);
const char* CompressionName(Compression compression);

class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Fills all of `out`. Fewer bytes mean that the end or an error comes next, and the next call
  // tells which: 0 at the end, else the error; both are sticky. So the bytes before an error are
  // all given out. What has not been verified yet by a trailer behind it may be given out too.
  virtual absl::StatusOr<size_t> Read(absl::Span<uint8_t> out) = 0;

  // Passes over the next `bytes`, or to the end. Plain files seek; others inflate.
  virtual absl::Status Skip(uint64_t bytes);

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

// What a file that begins with these bytes most likely is: "gzip", "zlib", "zstd", "plain TFRecord",
// or empty. Twelve bytes are enough.
const char* GuessFormat(absl::Span<const uint8_t> beginning);

}  // namespace penstock
