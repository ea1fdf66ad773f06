#include "server/kernels/gather.h"

#include <cstring>

namespace penstock::kernels {
namespace {

// Plain loads and stores: hardware gathers are no faster on rows that lie in L1.
template <typename T>
void GatherOf(const uint8_t* in, const int32_t* index, size_t elements, uint8_t* out) {
  for (size_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, in + static_cast<size_t>(index[i]) * sizeof(T), sizeof(T));
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  }
}

}  // namespace

void Gather(const uint8_t* in, const int32_t* index, size_t elements, size_t element_bytes,
            uint8_t* out) {
  switch (element_bytes) {
    case 1:
      return GatherOf<uint8_t>(in, index, elements, out);
    case 2:
      return GatherOf<uint16_t>(in, index, elements, out);
    case 4:
      return GatherOf<uint32_t>(in, index, elements, out);
    default:
      return GatherOf<uint64_t>(in, index, elements, out);
  }
}

void GatherRuns(const uint8_t* in, const int32_t* start, size_t runs, size_t run_bytes,
                size_t element_bytes, uint8_t* out) {
  for (size_t i = 0; i < runs; ++i) {
    std::memcpy(out, in + static_cast<size_t>(start[i]) * element_bytes, run_bytes);
    out += run_bytes;
  }
}

}  // namespace penstock::kernels
