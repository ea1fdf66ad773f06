// Looks for LZ4 frames whose unpacking writes or reads beyond what it was given, or leaves bytes
// unset where it says that all are there. The first three bytes are the plain size.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "io/arrow/lz4_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const size_t bytes = data[0] | data[1] << 8 | data[2] << 16;
  // In memory of exactly that size, which held something else each time.
  std::unique_ptr<uint8_t[]> plain[2];
  bool is_sound[2];
  for (int i = 0; i < 2; ++i) {
    plain[i] = std::make_unique<uint8_t[]>(bytes);
    std::fill_n(plain[i].get(), bytes, static_cast<uint8_t>(0x5A + i));
    is_sound[i] = penstock::UnpackLz4Frame({data + 3, size - 3}, {plain[i].get(), bytes}).ok();
  }
  if (is_sound[0] != is_sound[1]) std::abort();
  if (is_sound[0] && !std::equal(plain[0].get(), plain[0].get() + bytes, plain[1].get()))
    std::abort();
  return 0;
}
