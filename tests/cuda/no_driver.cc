// A library that is a driver only by its name: of CUDA 11, before the entry points that are needed.
#include <cstdint>

extern "C" __attribute__((visibility("default"))) int32_t cuDriverGetVersion(int32_t* version) {
  *version = 11080;
  return 0;
}
