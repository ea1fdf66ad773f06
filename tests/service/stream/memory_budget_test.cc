// Limits for the memory of rings: which one is named, and that every account comes back to nothing.

#include "server/service/stream/memory_budget.h"

#include <memory>
#include <string>

#include "tests/support/catch.h"

namespace penstock {
namespace {

constexpr int64_t kMiB = 1 << 20;

struct Asked {
  MemoryOwner owner;
  int64_t mib;
  std::string refused_by;  // "": it is taken
};

TEST_CASE("each limit is kept, and the narrowest of a refusal is named") {
  v1::MemoryLimits limits;
  limits.set_max_bytes(100 * kMiB);
  limits.set_max_pipeline_bytes(40 * kMiB);
  limits.set_max_user_bytes(60 * kMiB);
  limits.set_max_process_bytes(30 * kMiB);
  MemoryBudget budget;
  budget.SetLimits(limits);
  const Asked all[] = {
      {{"a", 1, 10}, 30, ""},
      {{"a", 1, 10}, 1, "memory.max_process_bytes"},
      {{"a", 1, 11}, 10, ""},
      {{"a", 2, 12}, 1, "memory.max_pipeline_bytes"},
      {{"b", 1, 12}, 20, ""},
      {{"c", 1, 12}, 10, "memory.max_user_bytes"},
      // Neither its user nor its process is known.
      {{"d", static_cast<uid_t>(-1), 0}, 40, ""},
      {{"e", 3, 13}, 1, "memory.max_bytes"},
      {{"e", 3, 13}, INT64_MAX / kMiB, "memory.max_pipeline_bytes"},
  };
  for (const Asked& asked : all) {
    const absl::Status status = budget.Take(asked.owner, asked.mib * kMiB);
    INFO(asked.owner.pipeline << " " << asked.mib << " " << status);
    CHECK(status.ok() == asked.refused_by.empty());
    if (!status.ok()) {
      CHECK(absl::IsResourceExhausted(status));
      CHECK(status.message().find(asked.refused_by) != absl::string_view::npos);
    }
  }
  CHECK(budget.taken() == 100 * kMiB);
}

TEST_CASE("a pipeline's own limit stands beside the others, and what is left is the least of all") {
  v1::MemoryLimits limits;
  limits.set_max_bytes(100 * kMiB);
  limits.set_max_pipeline_bytes(40 * kMiB);
  MemoryBudget budget;
  const auto own_limit = std::make_shared<std::atomic<uint64_t>>(0);
  const MemoryOwner a{"a", 1, 10, own_limit}, b{"b", 1, 10};
  CHECK(budget.Left(a) == UINT64_MAX);
  budget.SetLimits(limits);
  CHECK(budget.Left(a) == 40 * kMiB);
  *own_limit = 20 * kMiB;
  CHECK(budget.Left(a) == 20 * kMiB);
  REQUIRE(budget.Take(a, 15 * kMiB).ok());
  CHECK(budget.Left(a) == 5 * kMiB);
  CHECK(budget.Left(b) == 40 * kMiB);
  const absl::Status refused = budget.Take(a, 6 * kMiB);
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(refused.message().find("memory_bytes is 20.0 MiB") != absl::string_view::npos);
  // Less than it has taken: nothing more.
  *own_limit = 10 * kMiB;
  CHECK(budget.Left(a) == 0);
  // A larger one of its own opens no other limit.
  *own_limit = 90 * kMiB;
  CHECK(budget.Left(a) == 25 * kMiB);
  CHECK(!budget.Take(a, 26 * kMiB).ok());
  *own_limit = 0;
  CHECK(budget.Take(a, 25 * kMiB).ok());
}

TEST_CASE("a share gives back what it took, and sums do not wrap") {
  v1::MemoryLimits limits;
  limits.set_max_bytes(10 * kMiB);
  const auto budget = std::make_shared<MemoryBudget>();
  budget->SetLimits(limits);
  for (int pass = 0; pass < 3; ++pass) {
    MemoryShare first(budget, {"a", 1, 1});
    CHECK(first.Take(4 * kMiB).ok());
    {
      MemoryShare second(budget, {"a", 1, 1});
      CHECK(second.Take(4 * kMiB).ok());
      CHECK(second.Take(2 * kMiB).ok());
      CHECK(!second.Take(1).ok());
      CHECK(!second.Take(UINT64_MAX).ok());
      CHECK(budget->taken() == 10 * kMiB);
    }
    CHECK(budget->taken() == 4 * kMiB);
  }
  CHECK(budget->taken() == 0);
  MemoryShare unlimited(nullptr, {"b", 1, 1});
  CHECK(unlimited.Take(UINT64_MAX).ok());
}

}  // namespace
}  // namespace penstock
