// .npy files and ZIP archives for tests, put together byte by byte so that any of them may be
// wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/compressed.h"

namespace penstock::test {

inline std::string Little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i, value >>= 8) out.push_back(static_cast<char>(value));
  return out;
}

// A header of any version around any text.
inline std::string NpyWithText(const std::string& text, int version = 1) {
  return absl::StrCat("\x93NUMPY", Little(version, 1), Little(0, 1),
                      Little(text.size(), version == 1 ? 2 : 4), text);
}

inline std::string NpyHeaderText(const std::string& descr, const std::string& shape,
                                 const std::string& order = "False") {
  return NpyWithText(absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", order,
                                  ", 'shape': ", shape, ", }\n"));
}

struct ZipPart {
  std::string name = {};
  std::string plain = {};
  bool deflated = false;
  bool zip64 = false;      // its sizes and offset stand in a ZIP64 field
  uint32_t crc_error = 0;  // added to its checksum
  std::string extra = {};  // of its local header
  int flags = 0;
  int method = -1;  // instead of the right one
};

// APPNOTE 4.3.7, 4.3.12, 4.3.14 to 4.3.16.
inline std::string Zip(const std::vector<ZipPart>& parts, bool zip64_end = false,
                       const std::string& comment = "") {
  std::string file, directory;
  for (const ZipPart& part : parts) {
    const std::string data = part.deflated ? Deflate(part.plain, -15) : part.plain;
    const int method = part.method >= 0 ? part.method : part.deflated ? 8 : 0;
    const uint32_t crc =
        part.crc_error + crc32(0, reinterpret_cast<const Bytef*>(part.plain.data()),
                               static_cast<uInt>(part.plain.size()));
    const uint64_t offset = file.size();
    const std::string fields = absl::StrCat(Little(45, 2), Little(part.flags, 2), Little(method, 2),
                                            Little(0, 4), Little(crc, 4));
    absl::StrAppend(&file, "PK\x03\x04", fields, Little(data.size(), 4),
                    Little(part.plain.size(), 4), Little(part.name.size(), 2),
                    Little(part.extra.size(), 2), part.name, part.extra, data);
    const std::string wide =
        part.zip64
            ? absl::StrCat(Little(0x7777, 2), Little(2, 2), "??", Little(1, 2), Little(24, 2),
                           Little(part.plain.size(), 8), Little(data.size(), 8), Little(offset, 8))
            : "";
    absl::StrAppend(&directory, "PK\x01\x02", Little(45, 2), fields,
                    Little(part.zip64 ? UINT32_MAX : data.size(), 4),
                    Little(part.zip64 ? UINT32_MAX : part.plain.size(), 4),
                    Little(part.name.size(), 2), Little(wide.size(), 2), Little(0, 10),
                    Little(part.zip64 ? UINT32_MAX : offset, 4), part.name, wide);
  }
  const uint64_t start = file.size();
  file += directory;
  if (zip64_end) {
    const uint64_t at = file.size();
    absl::StrAppend(&file, "PK\x06\x06", Little(44, 8), Little(45, 2), Little(45, 2), Little(0, 8),
                    Little(parts.size(), 8), Little(parts.size(), 8));
    absl::StrAppend(&file, Little(directory.size(), 8), Little(start, 8), "PK\x06\x07",
                    Little(0, 4), Little(at, 8), Little(1, 4));
  }
  const uint64_t count = zip64_end ? UINT16_MAX : parts.size();
  absl::StrAppend(&file, "PK\x05\x06", Little(0, 4), Little(count, 2), Little(count, 2),
                  Little(zip64_end ? UINT32_MAX : directory.size(), 4),
                  Little(zip64_end ? UINT32_MAX : start, 4), Little(comment.size(), 2), comment);
  return file;
}

}  // namespace penstock::test
