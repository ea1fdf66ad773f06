// Fault 35, of what one pipeline or caller may take from the others.
#include "server/service/pipeline/work_memory.h"

#include "absl/strings/match.h"
#include "tests/support/catch.h"

namespace penstock::test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
const ring::MemoryAtHand kInAll = {1024 * kMiB, "its control group has 1.0 GiB"};

v1::PipelineSpec Spec(int64_t asked) {
  v1::PipelineSpec spec;
  spec.set_name("p");
  spec.set_max_work_bytes(asked);
  return spec;
}

std::string RefusalOf(MemoryAccount& account, uint64_t bytes) {
  try {
    account.Take(bytes);
  } catch (const MemoryLimitError& error) {
    return error.what();
  }
  account.GiveBack(bytes);
  return "";
}

TEST_CASE("without limits a pipeline has half of the memory, all together three quarters") {
  const WorkMemory memory(kInAll);
  const auto account = memory.AccountOf(Spec(0), nullptr);
  CHECK(account->bytes_max() == 512 * kMiB);
  CHECK(account->memory_bytes() == 1024 * kMiB);
  CHECK(memory.whole().bytes_max() == 768 * kMiB);
  CHECK(absl::EndsWith(RefusalOf(*account, 513 * kMiB),
                       "> 512.0 MiB (half of the memory, as its control group has 1.0 GiB; "
                       "max_work_bytes in the spec raises it)"));
}

TEST_CASE(
    "a spec may ask for more than the default, but not for more than the configuration says") {
  WorkMemory memory(kInAll);
  CHECK(memory.Check(Spec(700 * kMiB)).ok());
  CHECK(memory.AccountOf(Spec(700 * kMiB), nullptr)->bytes_max() == 700 * kMiB);
  CHECK(memory.Check(Spec(kMiB)).message() ==
        "max_work_bytes: expected 0 (the daemon's default) or at least 16777216, found 1048576");
  CHECK(absl::IsInvalidArgument(memory.Check(Spec(-1))));
  v1::MemoryLimits limits;
  limits.set_max_pipeline_work_bytes(100 * kMiB);
  limits.set_max_work_bytes(150 * kMiB);
  memory.SetLimits(limits);
  CHECK(memory.AccountOf(Spec(0), nullptr)->bytes_max() == 100 * kMiB);
  CHECK(memory.AccountOf(Spec(50 * kMiB), nullptr)->bytes_max() == 50 * kMiB);
  CHECK(
      memory.Check(Spec(101 * kMiB)).message() ==
      "max_work_bytes: expected at most 104857600 (memory.max_pipeline_work_bytes of the daemon's "
      "configuration), found 105906176");
  CHECK(memory.whole().bytes_max() == 150 * kMiB);
}

TEST_CASE("what the machine has not got is refused whatever the limits") {
  WorkMemory memory({UINT64_MAX, "no limit"});
  v1::MemoryLimits limits;
  limits.set_max_work_bytes(INT64_MAX);
  limits.set_max_pipeline_work_bytes(INT64_MAX);
  memory.SetLimits(limits);
  const auto account = memory.AccountOf(Spec(0), nullptr);
  CHECK(absl::StrContains(RefusalOf(*account, uint64_t{1} << 50), "memory that is not there: "));
  CHECK(account->taken() == 0);
}

}  // namespace
}  // namespace penstock::test
