#include "server/engine/spec/drawn_seed.h"

#include <random>

namespace penstock {

int64_t DrawSeed() {
  std::random_device device;
  return static_cast<int64_t>((uint64_t{device()} << 32 | device()) >> 1);
}

}  // namespace penstock
