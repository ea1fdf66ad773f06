// Against plain loops, on every instruction set, at every length, with every buffer at the end of a
// page.
#include "server/kernels/image_arithmetic.h"

#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/instruction_sets.h"

namespace penstock::testing {
namespace {

void Fill(const GuardedMemory& memory, size_t count) {
  uint32_t state = 17;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    memory.As<float>()[i] = static_cast<float>(state >> 8) / 77777 - 99;
  }
}

// Whether `run(in, out)` gives out[i] = expected(in, i), into other memory and in place.
template <class Run, class Expected>
void Check(size_t count_in, size_t count, const Run& run, const Expected& expected) {
  const GuardedMemory in(count_in * sizeof(float)), out(count * sizeof(float)),
      twin(count * sizeof(float));
  Fill(in, count_in);
  for (size_t i = 0; i < count; ++i) twin.As<float>()[i] = expected(in.As<float>(), i);
  run(in.As<float>(), out.As<float>());
  CHECK(std::memcmp(out.data(), twin.data(), count * sizeof(float)) == 0);
  run(in.As<float>(), in.As<float>());
  CHECK(std::memcmp(in.data(), twin.data(), count * sizeof(float)) == 0);
}

TEST_CASE(
    "Arithmetic of images has the bits of plain loops and touches no page behind its buffers") {
  ForEachInstructionSet([](const char* name) {
    for (size_t count = 1; count <= 70; ++count) {
      CAPTURE(name, count);
      Check(
          count, count,
          [&](const float* in, float* out) { kernels::AddToAll(in, count, 0.3f, out); },
          [](const float* in, size_t i) { return in[i] + 0.3f; });
      Check(
          2 * count, count,
          [&](const float* in, float* out) { kernels::AddPairs(in, in + count, count, out); },
          [&](const float* in, size_t i) { return in[i] + in[i + count]; });
      Check(
          4 * count, count,
          [&](const float* in, float* out) { kernels::AddQuarters(in, count, out); },
          [&](const float* in, size_t i) {
            const float even = in[i] + in[i + 2 * count], odd = in[i + count] + in[i + 3 * count];
            return even + odd;
          });
      for (const size_t period : {1, 2, 3, 4, 5, 17, 40}) {
        const GuardedMemory centres((period + kernels::kCentrePadding) * sizeof(float));
        for (size_t i = 0; i < period + kernels::kCentrePadding; ++i) {
          centres.As<float>()[i] = static_cast<float>(i % period) * 1.7f;
        }
        CAPTURE(period);
        Check(
            count, count,
            [&](const float* in, float* out) {
              kernels::StretchAround(in, count, centres.As<float>(), period, 1.3f, out);
            },
            [&](const float* in, size_t i) {
              const float centre = centres.As<float>()[i % period];
              const float distance = 1.3f * (in[i] - centre);
              return centre + distance;
            });
      }
    }
  });
}

}  // namespace
}  // namespace penstock::testing
