// PNG's filters, undone: against the scalar twin, which is the specification's text.
#include "server/kernels/unfilter.h"

#include <vector>

#include "tests/support/catch.h"

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
        // Of exactly the promised size, so that a sanitizer sees what is read or written behind.
        std::vector<uint8_t> row(bytes + kernels::kUnfilterPadding), above(row.size());
        for (uint8_t& byte : row) byte = draw();
        for (uint8_t& byte : above) byte = draw() / (pixels % 3 == 0 ? 64 : 1);  // equal distances
        std::vector<uint8_t> out(bytes), twin(bytes);
        kernels::UnfilterRow(filter, pixel_bytes, row.data(), above.data(), bytes, out.data());
        row.resize(bytes);
        above.resize(bytes);
        kernels::UnfilterRowScalar(filter, pixel_bytes, row.data(), above.data(), bytes,
                                   twin.data());
        CHECK((out == twin));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
