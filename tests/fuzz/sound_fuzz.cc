// Looks for bytes that make SoundDecoder, or libsndfile behind its checks, read or write where they
// must not: fault 21c. Needs libsndfile.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "server/codec/sound.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Without it, there would be nothing to find.
  if (!penstock::sndfile::Load().ok()) std::abort();
  constexpr int64_t kValuesMax = 1 << 22;
  // As it is, and with other numbers of everything.
  for (const int64_t more : {0, -1, 2}) {
    penstock::SoundDecoder decoder;
    const auto shape = decoder.Start({data, size});
    if (!shape.ok()) return 0;
    const int64_t channels = std::max<int64_t>(1, shape->channels + more);
    const int64_t samples = std::clamp<int64_t>(shape->samples + more, 0, kValuesMax / channels);
    std::vector<float> out(static_cast<size_t>(samples * channels));
    (void)decoder.Decode(samples, channels, out.data());
  }
  return 0;
}
