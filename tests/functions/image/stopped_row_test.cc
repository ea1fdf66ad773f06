// What may take long for one row looks for a stop in the middle of it (base/stop_flag.h).
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/stop_flag.h"
#include "tests/functions/image/row_function.h"

namespace penstock::testing {
namespace {

struct Case {
  std::string function;
  TensorType type;
  std::vector<LiteralArgument> rest;
};

// Whether the kernel gives up a row that nobody wants.
bool Stops(const Case& test) {
  const auto bound = Bind(test.function, test.type, test.rest);
  INFO(test.function << ": " << bound.status().ToString());
  REQUIRE(bound.ok());
  std::vector<uint8_t> bytes(*NumBytes(test.type));
  uint64_t state = 1;
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>((state = state * 6364136223846793005 + 1442695040888963407) >> 56 &
                                63);
  const expr::RowValue in[] = {{bytes.data(), bytes.size(), test.type.shape}};
  std::atomic<bool> stop{true};
  const StopFlag::Scope stops(&stop);
  CollectedOutput out;
  Arena arena;
  try {
    (void)bound->kernel->Run(in, arena, out);
  } catch (const Stopped&) {
    return true;
  }
  return false;
}

TEST_CASE("functions whose rows may take long look for a stop in the middle of a row") {
  const Case cases[] = {
      {"sort", {DType::kFloat64, {1 << 20}}, {int64_t{-1}}},
      {"argsort", {DType::kFloat64, {1 << 18}}, {int64_t{-1}}},
      {"rfft", {DType::kFloat64, {1 << 18}}, {{}}},
      {"gaussian_blur", {DType::kUint8, {256, 512, 3}}, {int64_t{31}, {}}},
      {"gaussian_blur", {DType::kFloat32, {256, 512, 3}}, {int64_t{31}, {}}},
  };
  for (const Case& test : cases) {
    INFO(test.function);
    CHECK(Stops(test));
  }
}

TEST_CASE("a row that is over soon is not given up") {
  CHECK_FALSE(Stops({"sort", {DType::kFloat64, {100}}, {int64_t{-1}}}));
  CHECK_FALSE(Stops({"gaussian_blur", {DType::kUint8, {16, 16, 3}}, {int64_t{3}, {}}}));
}

}  // namespace
}  // namespace penstock::testing
