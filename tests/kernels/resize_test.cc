// Resizing along rows and between them: against the scalar twins, on every instruction set, at
// every length, with every buffer at the end of a page.
#include "server/kernels/resize.h"

#include <cstring>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/instruction_sets.h"

namespace penstock::testing {
namespace {

using kernels::BilinearRow;
using kernels::kBilinearPadding;

class Dice {
 public:
  uint8_t Draw() {
    state_ = state_ * 1664525 + 1013904223;
    return static_cast<uint8_t>(state_ >> 24);
  }
  void Fill(uint8_t* values, size_t count) {
    for (size_t i = 0; i < count; ++i) values[i] = Draw();
  }
  void Fill(float* values, size_t count) {
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(Draw() * 256 + Draw()) / 7;
  }

 private:
  uint32_t state_ = 17;
};

bool AreSame(const GuardedMemory& a, const GuardedMemory& b, size_t bytes) {
  return std::memcmp(a.data(), b.data(), bytes) == 0;
}

template <typename T>
void CheckRow(Dice& dice, const BilinearRow& row) {
  const auto count_in = static_cast<size_t>(row.width_in * row.channels);
  const auto count_out = static_cast<size_t>(row.width_out * row.channels);
  const GuardedMemory in(count_in * sizeof(T));
  const GuardedMemory out(count_out * sizeof(float) + kBilinearPadding),
      twin(count_out * sizeof(float) + kBilinearPadding);
  dice.Fill(in.As<T>(), count_in);
  kernels::ResizeRow(row, in.As<T>(), out.As<float>());
  kernels::ResizeRowScalar(row, in.As<T>(), twin.As<float>());
  CAPTURE(sizeof(T));
  CHECK(AreSame(out, twin, count_out * sizeof(float)));
}

TEST_CASE("A resized row has the bits of its scalar twin and touches no page behind its buffers") {
  ForEachInstructionSet([](const char* name) {
    Dice dice;
    for (const int channels : {1, 2, 3, 4}) {
      for (int64_t width_in = 1; width_in <= 40; ++width_in) {
        // Enlarged, kept, and made smaller than a window of sixteen bytes can follow.
        for (const int64_t width_out :
             {int64_t{1}, int64_t{2}, width_in / 5 + 1, width_in, width_in + 7, 3 * width_in}) {
          CAPTURE(name, channels, width_in, width_out);
          std::vector<uint8_t> memory(kernels::BilinearRowBytes(width_out, channels) + 64);
          uint8_t* const aligned =
              memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
          for (const bool mirrored : {false, true}) {
            const BilinearRow row = kernels::MakeBilinearRowPart(width_in, width_out, 0, width_out,
                                                                 channels, mirrored, aligned);
            CheckRow<uint8_t>(dice, row);
            CheckRow<float>(dice, row);
          }
        }
      }
    }
  });
}

TEST_CASE("Rows between two rows have the bits of their scalar twin, at every length") {
  ForEachInstructionSet([](const char* name) {
    Dice dice;
    for (size_t count = 1; count <= 70; ++count) {
      CAPTURE(name, count);
      const size_t bytes = count * sizeof(float) + kBilinearPadding;
      const GuardedMemory top(bytes), bottom(bytes), out(bytes), twin(bytes);
      dice.Fill(top.As<float>(), bytes / sizeof(float));
      dice.Fill(bottom.As<float>(), bytes / sizeof(float));
      const float lerp = static_cast<float>(dice.Draw()) / 256;
      kernels::LerpRows(top.As<float>(), bottom.As<float>(), lerp, count, out.As<float>());
      kernels::LerpRowsScalar(top.As<float>(), bottom.As<float>(), lerp, count, twin.As<float>());
      CHECK(AreSame(out, twin, count * sizeof(float)));
    }
  });
}

}  // namespace
}  // namespace penstock::testing
