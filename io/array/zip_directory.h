// The members of a ZIP archive, and their bytes: what an .npz file is read by.
//
// The format is PKWARE's APPNOTE 6.3: the directory at the end of the file, with ZIP64. Members are
// stored or deflated. Everything that the file says is checked against its size before it is
// believed.
//
// Threads: any; no state.
// Limits:  one disk; a directory of at most kMaxZipDirectoryBytes. No encryption.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/file.h"

namespace penstock {

inline constexpr uint64_t kMaxZipDirectoryBytes = uint64_t{16} << 20;

struct ZipMember {
  std::string name;
  bool deflated = false;
  uint32_t crc32 = 0;  // of its plain bytes
  uint64_t plain_bytes = 0;
  uint64_t data_bytes = 0;   // in the file
  uint64_t data_offset = 0;  // in the file; all of them lie in it
};

// In the order of the directory, without folders. DataLoss with an address for what is no whole
// archive; InvalidArgument for what is not supported.
absl::StatusOr<std::vector<ZipMember>> ReadZipDirectory(RandomAccessFile& file);

// Inflates the beginning of a deflated member, up to out.size() bytes, and gives their number.
absl::StatusOr<size_t> InflateBeginning(RandomAccessFile& file, const ZipMember& member,
                                        absl::Span<uint8_t> out);

// Inflates a deflated member and verifies its size and checksum. REQUIRES: out.size() is
// plain_bytes.
absl::Status InflateWhole(RandomAccessFile& file, const ZipMember& member, absl::Span<uint8_t> out);

// The CRC-32 (that of gzip and ZIP) of some bytes, whose own is `crc`, and of these behind them. 0
// is that of no bytes.
uint32_t ExtendCrc32(uint32_t crc, absl::Span<const uint8_t> bytes);

}  // namespace penstock
