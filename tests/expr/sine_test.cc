// Sine and cosine of vectors: the bits of the single value's way, on every instruction set.
#include "server/kernels/sine.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "server/expr/compile.h"
#include "tests/expr/instruction_sets.h"
#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

std::vector<float> Angles() {
  std::vector<float> angles = {0.0f, -0.0f, 524287.97f, 524288.0f, -524288.0f, 1e38f};
  angles.push_back(std::numeric_limits<float>::infinity());
  angles.push_back(std::numeric_limits<float>::quiet_NaN());
  angles.push_back(std::numeric_limits<float>::denorm_min());
  // Floats of every magnitude, in runs that have nothing large among them and in others.
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 100'003)
    angles.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  // Where the result is near zero, and where the reduction changes its multiple.
  for (int eighth = -20'000; eighth <= 20'000; ++eighth) {
    const auto x = static_cast<float>(eighth * 0.78539816339744831);
    for (const float near : {std::nextafter(x, -1e9f), x, std::nextafter(x, 1e9f)})
      angles.push_back(near);
  }
  return angles;
}

TEST_CASE("Sine and cosine of vectors have the bits of single ones") {
  std::vector<float> angles = Angles();
  const auto count = static_cast<int64_t>(angles.size());
  const Signature inputs = {{"x", {DType::kFloat32, {count}}}};
  MapSource map;
  map.stage = "map";
  map.outs = {"a = sin(x)", "b = cos(x)"};
  for (const InstructionSet& set : InstructionSets()) {
    const ScopedInstructionSet scoped(set);
    const auto program = CompileFor(inputs, {map}, set.lanes);
    INFO(program.status().ToString());
    REQUIRE(program.ok());
    std::vector<float> sines(angles.size()), cosines(angles.size());
    uint8_t* const outs[] = {reinterpret_cast<uint8_t*>(sines.data()),
                             reinterpret_cast<uint8_t*>(cosines.data())};
    const Column columns[] = {
        {reinterpret_cast<uint8_t*>(angles.data()), angles.size() * sizeof(float), nullptr}};
    Arena arena;
    REQUIRE((*program)->Run(1, columns, outs, arena).ok());
    int wrong = 0;
    for (size_t i = 0; i < angles.size(); ++i) {
      const float sine = kernels::SineOf(angles[i]), cosine = kernels::CosineOf(angles[i]);
      const bool same = std::isnan(sine)
                            ? std::isnan(sines[i]) && std::isnan(cosines[i])
                            : std::memcmp(&sine, &sines[i], sizeof(sine)) == 0 &&
                                  std::memcmp(&cosine, &cosines[i], sizeof(cosine)) == 0;
      if (same || ++wrong > 3) continue;
      CAPTURE(set.name, angles[i], sine, sines[i], cosine, cosines[i]);
      CHECK(same);
    }
    CAPTURE(set.name);
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace penstock::expr
