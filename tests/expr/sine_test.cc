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

// Both functions of all angles, by the program of this instruction set.
template <typename T>
void Compute(const InstructionSet& set, std::vector<T>& angles, std::vector<T>& sines,
             std::vector<T>& cosines) {
  const DType dtype = sizeof(T) == sizeof(float) ? DType::kFloat32 : DType::kFloat64;
  const Signature inputs = {{"x", {dtype, {static_cast<int64_t>(angles.size())}}}};
  MapSource map;
  map.stage = "map";
  map.outs = {"a = sin(x)", "b = cos(x)"};
  const auto program = CompileFor(inputs, {map}, set.lanes);
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  uint8_t* const outs[] = {reinterpret_cast<uint8_t*>(sines.data()),
                           reinterpret_cast<uint8_t*>(cosines.data())};
  const Column columns[] = {
      {reinterpret_cast<uint8_t*>(angles.data()), angles.size() * sizeof(T), nullptr}};
  Arena arena;
  REQUIRE((*program)->Run(1, columns, outs, arena).ok());
}

TEST_CASE("Sine and cosine of vectors have the bits of single ones") {
  std::vector<float> angles = Angles();
  for (const InstructionSet& set : InstructionSets()) {
    const ScopedInstructionSet scoped(set);
    std::vector<float> sines(angles.size()), cosines(angles.size());
    Compute(set, angles, sines, cosines);
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

std::vector<double> DoubleAngles() {
  std::vector<double> angles = {0.0,
                                -0.0,
                                524287.9999,
                                524288.0,
                                1e22,
                                6381956970095103.0 * 0x1p797,
                                1e-300,
                                0x1p-30,
                                -0x1p-540,
                                std::numeric_limits<double>::denorm_min(),
                                std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
  uint64_t state = 1;
  const auto random = [&] {
    state = state * 6364136223846793005 + 1442695040888963407;
    return state >> 11;
  };
  // Of every magnitude, and those that pipelines have.
  for (uint64_t bits = 0; bits < uint64_t{0x7ff} << 52; bits += uint64_t{0x7ff} << 37) {
    angles.push_back(std::bit_cast<double>(bits ^ random() >> 20));
    angles.push_back(-angles.back());
  }
  for (const double scale : {1.0, 8.0, 1000.0, 600'000.0}) {
    for (int i = 0; i < 60'000; ++i)
      angles.push_back((static_cast<double>(random()) * 0x1p-52 - 1) * scale);
  }
  // Where the result is near zero, and where the reduction changes its multiple.
  for (int eighth = -20'000; eighth <= 20'000; ++eighth) {
    const double x = eighth * 0.78539816339744831;
    for (const double near : {std::nextafter(x, -1e9), x, std::nextafter(x, 1e9)})
      angles.push_back(near);
  }
  return angles;
}

bool SameOrNan(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

TEST_CASE("Sine and cosine of float64 have the bits of extended precision") {
  std::vector<double> angles = DoubleAngles();
  std::vector<double> want_sines, want_cosines;
  for (const double x : angles) {
    want_sines.push_back(kernels::SineByX87(x));
    want_cosines.push_back(kernels::CosineByX87(x));
  }
  for (const InstructionSet& set : InstructionSets()) {
    const ScopedInstructionSet scoped(set);
    std::vector<double> sines(angles.size()), cosines(angles.size());
    Compute(set, angles, sines, cosines);
    int wrong = 0;
    for (size_t i = 0; i < angles.size(); ++i) {
      const bool same =
          SameOrNan(sines[i], want_sines[i]) && SameOrNan(cosines[i], want_cosines[i]);
      if (same || ++wrong > 3) continue;
      CAPTURE(set.name, angles[i], sines[i], want_sines[i], cosines[i], want_cosines[i]);
      CHECK(same);
    }
    CAPTURE(set.name);
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace penstock::expr
