// Zstandard (RFC 8878) by libzstd. Use OpenStream of byte_stream.h.
//
// Threads:  as ByteStream: one stream belongs to one thread at a time.
#pragma once

#include <memory>

#include "absl/types/span.h"
#include "base/file.h"
#include "io/inflate/byte_stream.h"

namespace penstock {

// Whether a frame, or one to be skipped, may begin so.
bool BeginsAsZstd(absl::Span<const uint8_t> bytes);

std::unique_ptr<ByteStream> OpenZstdStream(std::shared_ptr<RandomAccessFile> file,
                                           size_t piece_bytes);

}  // namespace penstock
