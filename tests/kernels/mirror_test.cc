// Rows in reverse: against the scalar twin, on every instruction set, at every length, with both
// buffers between pages that may not be touched.
#include "server/kernels/mirror.h"

#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/instruction_sets.h"

namespace penstock::testing {
namespace {

TEST_CASE(
    "A mirrored row has the bytes of its scalar twin and touches none outside of its buffers") {
  ForEachInstructionSet([](const char* name) {
    for (const size_t pixel_bytes : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24}) {
      for (size_t count = 1; count <= 70; ++count) {
        CAPTURE(name, pixel_bytes, count);
        const size_t bytes = count * pixel_bytes;
        const GuardedMemory in(bytes), out(bytes), twin(bytes);
        for (size_t i = 0; i < bytes; ++i) in.As<uint8_t>()[i] = static_cast<uint8_t>(i * 7 + 1);
        kernels::MirrorPixels(in.As<uint8_t>(), count, pixel_bytes, out.As<uint8_t>());
        kernels::MirrorPixelsScalar(in.As<uint8_t>(), count, pixel_bytes, twin.As<uint8_t>());
        CHECK(std::memcmp(out.data(), twin.data(), bytes) == 0);
        CHECK(twin.As<uint8_t>()[0] == in.As<uint8_t>()[bytes - pixel_bytes]);
      }
    }
  });
}

}  // namespace
}  // namespace penstock::testing
