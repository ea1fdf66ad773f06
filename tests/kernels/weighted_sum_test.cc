// Weighted sums of rows and pixels against loops, on every instruction set, at all tail lengths,
// with nothing to read or write behind.
#include "server/kernels/weighted_sum.h"

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/instruction_sets.h"

namespace penstock::kernels {
namespace {

using testing::GuardedMemory;

float Drawn(std::mt19937& random) {
  // Zeros of both signs among them: what is added first shows in the sign of a sum of zeros.
  return random() % 8 == 0 ? -0.0F : static_cast<float>(random()) / 0x1p31F - 1;
}

TEST_CASE("Weighted sums of rows") {
  std::mt19937 random(7);
  testing::ForEachInstructionSet([&](const char*) {
    for (const float first : {0.0F, -0.0F}) {
      for (size_t num_rows = 0; num_rows < 6; ++num_rows) {
        for (size_t count = 0; count < 150; ++count) {
          CAPTURE(num_rows, count, first);
          std::deque<GuardedMemory> memory;
          std::vector<const float*> rows;
          std::vector<float> weights, want(count, first);
          for (size_t k = 0; k < num_rows; ++k) {
            float* const row = memory.emplace_back(count * sizeof(float)).As<float>();
            std::generate_n(row, count, [&] { return Drawn(random); });
            weights.push_back(Drawn(random));
            rows.push_back(row);
            for (size_t i = 0; i < count; ++i) want[i] += weights[k] * row[i];
          }
          const GuardedMemory out(count * sizeof(float));
          SumRows(rows.data(), weights.data(), num_rows, count, first, out.As<float>());
          REQUIRE(out.BeginsWith(want));
        }
      }
    }
  });
}

TEST_CASE("Weighted sums of pixels") {
  std::mt19937 random(8);
  testing::ForEachInstructionSet([&](const char*) {
    for (const float first : {0.0F, -0.0F}) {
      for (size_t channels = 1; channels < 10; ++channels) {
        for (const size_t width_in : {1, 2, 5, 31}) {
          for (const size_t width_out : {0, 1, 2, 3, 17}) {
            CAPTURE(channels, width_in, width_out, first);
            const GuardedMemory line((width_in * channels + kPixelPadding) * sizeof(float));
            std::generate_n(line.As<float>(), width_in * channels + kPixelPadding,
                            [&] { return Drawn(random); });
            const size_t span = 1 + random() % 5;
            std::vector<int64_t> starts(width_out);
            std::vector<float> weights(width_out * span), want;
            for (int64_t& start : starts) start = static_cast<int64_t>(random() % width_in);
            for (float& weight : weights) weight = Drawn(random);
            // As many as the line has, or fewer.
            const bool has_counts = random() % 2 == 0;
            std::vector<int64_t> counts;
            for (const int64_t start : starts) {
              const auto most = std::min<int64_t>(span, static_cast<int64_t>(width_in) - start);
              counts.push_back(has_counts ? static_cast<int64_t>(random() % (most + 1)) : most);
            }
            for (size_t x = 0; x < width_out; ++x) {
              for (size_t c = 0; c < channels; ++c) {
                float sum = first;
                for (int64_t k = 0; k < counts[x]; ++k)
                  sum += weights[x * span + k] * line.As<float>()[(starts[x] + k) * channels + c];
                want.push_back(sum);
              }
            }
            const GuardedMemory out(width_out * channels * sizeof(float));
            const PixelSpans spans = {span, starts.data(), weights.data(),
                                      has_counts ? counts.data() : nullptr};
            SumPixels(line.As<float>(), width_in, channels, spans, width_out, first,
                      out.As<float>());
            REQUIRE(out.BeginsWith(want));
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace penstock::kernels
