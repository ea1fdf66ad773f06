// What every op keeps of a spec: the same bytes whatever the workers and delays; a cursor of any
// step goes on with the same tail; a stream that is stopped stops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/cursor.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/shuffled_reads.h"

namespace penstock::test {

inline constexpr uint64_t kMaxSteps = 45;  // of pipelines without end

// Where the two differ first, in words; "" where they are equal.
inline std::string Difference(const RunResult& found, const RunResult& expected, size_t first) {
  const size_t count = expected.batches.size() - first;
  for (size_t i = 0; i < std::min(found.batches.size(), count); ++i) {
    const Batch& a = found.batches[i];
    const Batch& b = expected.batches[first + i];
    const std::string where = absl::StrCat("batch ", i, " (step ", b.info.step, "): ");
    if (a.info.step != b.info.step) return absl::StrCat(where, "its step is ", a.info.step);
    if (a.info.rows != b.info.rows)
      return absl::StrCat(where, "rows ", a.info.rows, ", not ", b.info.rows);
    if (a.info.epoch != b.info.epoch)
      return absl::StrCat(where, "epoch ", a.info.epoch, ", not ", b.info.epoch);
    for (size_t t = 0; t < b.tensors.size(); ++t) {
      if (a.tensors[t] != b.tensors[t])
        return absl::StrCat(where, "tensor ", t, " has other bytes");
    }
    if (WithoutCounts(a.info.cursor) != WithoutCounts(b.info.cursor))
      return absl::StrCat(where, "another cursor");
  }
  if (found.batches.size() != count)
    return absl::StrCat(found.batches.size(), " batches, not ", count);
  if (found.finished != expected.finished) return expected.finished ? "no end" : "an end";
  if (found.status != expected.status)
    return absl::StrCat("status ", found.status.ToString(), ", not ", expected.status.ToString());
  return "";
}

// Whether a stream ends just behind the last step that is asked for is a matter of time.
inline RunResult Run(std::shared_ptr<const Plan> plan, const RunOptions& options) {
  RunResult result = RunPlan(std::move(plan), options);
  if (result.batches.size() == options.max_steps) {
    result.finished = false;
    result.status = absl::OkStatus();
  }
  return result;
}

class Contract {
 public:
  explicit Contract(const std::string& spec) : spec_(spec), plan_(MustPlan(LocalFileSystem())) {
    reference_ = Run(plan_, {.workers = 1, .max_steps = kMaxSteps});
  }

  const RunResult& reference() const { return reference_; }

  void CheckWorkers() {
    for (const int workers : {2, 8}) {
      INFO(workers << " workers");
      CHECK(Difference(Run(plan_, {.workers = workers, .slots = workers, .max_steps = kMaxSteps}),
                       reference_, 0) == "");
    }
  }

  void CheckDelays(uint64_t seed) {
    for (const int workers : {1, 3, 8}) {
      INFO(workers << " workers, delays of seed " << seed);
      ShuffledReads reads(seed + workers);
      CHECK(Difference(Run(MustPlan(reads), {.workers = workers, .max_steps = kMaxSteps}),
                       reference_, 0) == "");
    }
  }

  void CheckCursors(uint64_t seed) {
    std::mt19937_64 dice(seed);
    const size_t count = reference_.batches.size();
    if (count == 0) return;
    std::vector<size_t> steps = {0, std::min<size_t>(1, count - 1), dice() % count, count / 2,
                                 count - 1};
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    for (const size_t step : steps) {
      const std::string& cursor = reference_.batches[step].info.cursor;
      CHECK(cursor.size() <= kMaxCursorBytes);
      const int workers = 1 + static_cast<int>(dice() % 4);
      INFO("cursor of step " << step << ", " << workers << " workers");
      const RunResult tail = Resume(plan_, cursor, step, workers);
      CHECK(Difference(tail, reference_, step + 1) == "");
      if (tail.batches.empty()) continue;
      // Once more, from a cursor of the resumed run.
      const size_t later = dice() % tail.batches.size();
      INFO("and of step " << step + 1 + later);
      ShuffledReads reads(dice());
      CHECK(
          Difference(Resume(MustPlan(reads), tail.batches[later].info.cursor, step + 1 + later, 3),
                     reference_, step + 2 + later) == "");
    }
  }

  void CheckStop() {
    ShuffledReads reads(1);
    for (const uint64_t steps : {uint64_t{0}, uint64_t{1}, reference_.batches.size() / 2}) {
      for (const int workers : {1, 4}) {
        INFO("stopped behind " << steps << " steps, " << workers << " workers");
        const RunResult result =
            Run(MustPlan(reads), {.workers = workers, .slots = 2, .max_steps = steps});
        CHECK(result.batches.size() == std::min<uint64_t>(steps, reference_.batches.size()));
      }
    }
  }

 private:
  std::shared_ptr<const Plan> MustPlan(FileSystem& files) const {
    auto plan = PlanText(spec_, files);
    INFO(plan.status().ToString());
    REQUIRE(plan.ok());
    return *plan;
  }

  RunResult Resume(std::shared_ptr<const Plan> plan, const std::string& cursor, size_t step,
                   int workers) const {
    RunOptions options{
        .workers = workers, .slots = 1 + workers, .max_steps = kMaxSteps, .cursor = cursor};
    // A stream that was cut off is cut off at the same place.
    if (!reference_.finished) options.max_steps = reference_.batches.size() - step - 1;
    return Run(std::move(plan), options);
  }

  const std::string spec_;
  const std::shared_ptr<const Plan> plan_;
  RunResult reference_;
};

}  // namespace penstock::test
