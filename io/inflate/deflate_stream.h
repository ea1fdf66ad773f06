// gzip (RFC 1952) and zlib (RFC 1950) by ISA-L. Use OpenStream of byte_stream.h.
//
// Threads:  as ByteStream: one stream belongs to one thread at a time.
#pragma once

#include <memory>

#include "absl/types/span.h"
#include "base/file.h"
#include "io/inflate/byte_stream.h"

namespace penstock {

// Whether a member may begin so. Of bytes that are too few to tell, what is there must agree.
bool BeginsAsGzip(absl::Span<const uint8_t> bytes);
bool BeginsAsZlib(absl::Span<const uint8_t> bytes);

std::unique_ptr<ByteStream> OpenDeflateStream(std::shared_ptr<RandomAccessFile> file, bool gzip,
                                              size_t piece_bytes);

}  // namespace penstock
