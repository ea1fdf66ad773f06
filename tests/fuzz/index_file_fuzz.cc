// Looks for bytes of an index that are believed and should not be (fault 31). Their checksum is put right, so
// that what lies behind it is reached; so is the version, but for the old one.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "io/file/crc32c.h"
#include "io/record/index_file.h"
#include "io/record/tfrecord_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  if (size < 68) return 0;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const bool is_old = data[8] == 1;
  std::memcpy(bytes.data(), is_old ? "PENSTIX\n\1\0\0\0" : "PENSTIX\n\2\0\0\0", 12);
  // The data's size and ends are those that the index claims.
  auto* begin = reinterpret_cast<uint8_t*>(bytes.data());
  const IndexStamp stamp = {LoadU64(begin + 16), {}, LoadU32(begin + 40), LoadU32(begin + 44)};
  const uint32_t crc = Crc32c(begin, size - 4);
  std::memcpy(bytes.data() + size - 4, &crc, 4);
  bool copied = false;
  MemoryBlock file = RecordIndex::Allocate(size);
  std::memcpy(file.get(), begin, size);
  const auto index = ParseIndex(std::move(file), size, stamp, 0, &copied);
  if (!index.ok()) return 0;
  // What is believed lies in the data, in order, without overlap.
  uint64_t end = 0;
  for (uint64_t i = 0; i < (*index)->size(); ++i) {
    const uint64_t offset = (*index)->offset(i);
    const uint64_t length = (*index)->length(i);
    if (offset < end || length > stamp.data_bytes) std::abort();
    end = offset + kFrameBytes + length;
    if (end < offset || end > stamp.data_bytes) std::abort();
  }
  return 0;
}
