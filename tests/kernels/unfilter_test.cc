// PNG's filters, undone: against the scalar twin, which is the specification's text.
#include "server/kernels/unfilter.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"

namespace penstock::testing {
namespace {

TEST_CASE("Every filter gives the bytes of its scalar twin, at every length") {
  uint32_t state = 9;
  const auto draw = [&state] {
    state = state * 1664525 + 1013904223;
    return static_cast<uint8_t>(state >> 24);
  };
  for (int filter = 0; filter < kernels::kPngFilters; ++filter) {
    for (int pixel_bytes = 1; pixel_bytes <= 4; ++pixel_bytes) {
      for (int pixels = 1; pixels <= 70; ++pixels) {
        CAPTURE(filter, pixel_bytes, pixels);
        const auto bytes = static_cast<size_t>(pixel_bytes * pixels);
        // Of exactly the promised size, at the end of a page each.
        const size_t padded = bytes + kernels::kUnfilterPadding;
        const GuardedMemory row(padded), above(padded), out(bytes);
        for (size_t i = 0; i < padded; ++i) {
          row.data()[i] = draw();
          above.data()[i] = draw() / (pixels % 3 == 0 ? 64 : 1);  // equal distances
        }
        kernels::UnfilterRow(filter, pixel_bytes, row.data(), above.data(), bytes, out.data());
        const GuardedMemory bare_row(bytes), bare_above(bytes), twin(bytes);
        std::copy_n(row.data(), bytes, bare_row.data());
        std::copy_n(above.data(), bytes, bare_above.data());
        kernels::UnfilterRowScalar(filter, pixel_bytes, bare_row.data(), bare_above.data(), bytes,
                                   twin.data());
        CHECK(std::equal(out.data(), out.data() + bytes, twin.data()));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
