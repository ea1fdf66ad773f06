// Looks for bytes of an index that are believed and should not be (fault 31). Their checksum is put
// right, so that what lies behind it is reached; so is the version, but for the old ones, and the
// format.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/random.h"
#include "io/file/crc32c.h"
#include "io/record/index_file.h"
#include "io/record/tfrecord_access.h"
#include "io/record/tfrecord_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  if (size < 68) return 0;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const uint8_t version = data[8] == 1 || data[8] == 2 ? data[8] : 3;
  std::memcpy(bytes.data(), "PENSTIX\n\0\0\0\0", 12);
  bytes[8] = static_cast<char>(version);
  const RecordAccess& access = TfrecordAccess();
  const uint64_t key = MixKey(0, access.IndexKey());
  if (version == 3 && size >= 100) std::memcpy(bytes.data() + 88, &key, sizeof(key));
  // The data's size and ends are those that the index claims.
  auto* begin = reinterpret_cast<uint8_t*>(bytes.data());
  const IndexStamp stamp = {LoadU64(begin + 16), {}, LoadU32(begin + 40), LoadU32(begin + 44)};
  const uint32_t crc = Crc32c(begin, size - 4);
  std::memcpy(bytes.data() + size - 4, &crc, 4);
  bool copied = false;
  MemoryBlock file = RecordIndex::Allocate(size);
  std::memcpy(file.get(), begin, size);
  const auto index = ParseIndex(std::move(file), size, access, stamp, 0, &copied);
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
