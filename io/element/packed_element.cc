#include "io/element/packed_element.h"

#include <isa-l/igzip_lib.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr size_t kSizeBytes = sizeof(uint64_t);
// The most that deflate makes of a byte.
constexpr uint64_t kRatioMax = 1032;
// Of blocks that are not compressed: their headers, one for each 64 KiB, and those of gzip.
size_t StoredBytes(size_t bytes) { return bytes + (bytes / 65535 + 1) * 5 + 64; }

}  // namespace

std::string PackElement(absl::Span<const uint8_t> element) {
  std::string packed(kSizeBytes + StoredBytes(element.size()), 0);
  const uint64_t size = element.size();
  std::memcpy(packed.data(), &size, kSizeBytes);
  std::vector<uint8_t> room(ISAL_DEF_LVL1_DEFAULT);
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.level = 1;
  stream.level_buf = room.data();
  stream.level_buf_size = static_cast<uint32_t>(room.size());
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = const_cast<uint8_t*>(element.data());
  stream.avail_in = static_cast<uint32_t>(element.size());
  stream.next_out = reinterpret_cast<uint8_t*>(packed.data()) + kSizeBytes;
  stream.avail_out = static_cast<uint32_t>(packed.size() - kSizeBytes);
  const int result = isal_deflate_stateless(&stream);
  // There was room for all of it as it is.
  if (result != COMP_OK) std::abort();
  packed.resize(kSizeBytes + stream.total_out);
  return packed;
}

absl::StatusOr<absl::Span<const uint8_t>> UnpackElement(absl::Span<const uint8_t> packed,
                                                        Arena& arena) {
  uint64_t size = 0;
  if (packed.size() < kSizeBytes) return absl::DataLossError("a packed element is too short");
  std::memcpy(&size, packed.data(), kSizeBytes);
  packed.remove_prefix(kSizeBytes);
  if (size > UINT32_MAX || size > packed.size() * kRatioMax) {
    return absl::DataLossError(absl::StrCat("a packed element claims to have ", size,
                                            " bytes, which ", packed.size(), " cannot hold"));
  }
  uint8_t* const bytes = arena.Allocate(size);
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_GZIP;
  state.next_in = const_cast<uint8_t*>(packed.data());
  state.avail_in = static_cast<uint32_t>(packed.size());
  state.next_out = bytes;
  state.avail_out = static_cast<uint32_t>(size);
  const int result = isal_inflate_stateless(&state);
  if (result != ISAL_DECOMP_OK || state.total_out != size || state.avail_in != 0) {
    return absl::DataLossError(absl::StrCat("a packed element is malformed: error ", result, ", ",
                                            state.total_out, " of ", size, " bytes"));
  }
  return absl::MakeConstSpan(bytes, size);
}

}  // namespace penstock
