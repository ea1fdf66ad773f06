// What the steps of a program are called, and that they are told to who asks, and to nobody else.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/step_times.h"
#include "server/expr/program.h"
#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

class Told final : public StepTimes {
 public:
  void Add(absl::Span<const std::string> names, absl::Span<const uint64_t> ticks) override {
    REQUIRE(names.size() == ticks.size());
    ++runs;
    steps.assign(names.begin(), names.end());
    for (const uint64_t each : ticks) all_ticks += each;
  }

  int runs = 0;
  uint64_t all_ticks = 0;
  std::vector<std::string> steps;
};

// The names of the steps of a map of a list of eight float32, each run once.
std::string StepsOf(const std::vector<std::string>& outs) {
  const Signature inputs = {{"x", {DType::kFloat32, {8}}}};
  MapSource map;
  map.stage = "map";
  map.outs = outs;
  const absl::StatusOr<std::unique_ptr<Program>> program = Compile(inputs, {map});
  REQUIRE(program.ok());
  std::vector<float> x(4 * 8 + 16, 1.5F);
  const std::vector<Column> in = {{reinterpret_cast<uint8_t*>(x.data()), 32, nullptr}};
  std::vector<std::vector<uint8_t>> bytes(outs.size(), std::vector<uint8_t>(4 * 64 + 64));
  std::vector<Column> out;
  for (std::vector<uint8_t>& each : bytes) out.push_back({each.data(), 0, nullptr});
  Arena arena;
  Told told;
  {
    const StepTimes::Scope scope(&told);
    REQUIRE((*program)->Run(4, in, absl::MakeSpan(out), arena).ok());
  }
  CHECK(told.runs == 1);
  CHECK(told.all_ticks > 0);
  // Nobody asks any more.
  REQUIRE((*program)->Run(4, in, absl::MakeSpan(out), arena).ok());
  CHECK(told.runs == 1);
  return absl::StrJoin(told.steps, " | ");
}

TEST_CASE("a step is called as its functions are") {
  CHECK(StepsOf({"y = x * 2.0 + 1.0"}) == "multiply, add");
  CHECK(StepsOf({"y = cumsum(x)"}) == "cumsum");
  CHECK(StepsOf({"y = x[::-1]"}) == "rearrange");
  CHECK(StepsOf({"y = x"}) == "copy");
}

TEST_CASE("of many functions of one step the first four are named") {
  CHECK(StepsOf({"y = abs(sqrt(tanh(exp(x * 2.0 + 1.0))))"}) == "multiply, add, exp, tanh, …");
}

TEST_CASE("scopes lie one in another") {
  CHECK(StepTimes::OfThisThread() == nullptr);
  Told outer, inner;
  const StepTimes::Scope first(&outer);
  {
    const StepTimes::Scope second(&inner);
    CHECK(StepTimes::OfThisThread() == &inner);
  }
  CHECK(StepTimes::OfThisThread() == &outer);
}

}  // namespace
}  // namespace penstock::expr
