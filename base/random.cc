#include "base/random.h"

namespace penstock {

uint64_t MixKey(uint64_t seed, std::string_view name) {
  // The sponge is Philox itself: absorb the seed, then eight bytes of the name at a time, then the
  // length.
  PhiloxBlock state = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                       static_cast<uint32_t>(name.size()), 0};
  for (size_t start = 0; start < name.size(); start += 8) {
    std::array<uint32_t, 2> word = {0, 0};
    for (size_t i = start; i < name.size() && i < start + 8; ++i) {
      word[(i - start) / 4] |= uint32_t{static_cast<uint8_t>(name[i])} << (8 * (i % 4));
    }
    state = Philox4x32(state, word);
  }
  state = Philox4x32(state, {0x50656e73u, 0x746f636bu});
  return uint64_t{state[1]} << 32 | state[0];
}

}  // namespace penstock
