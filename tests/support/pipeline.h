// Runs a spec to its end, or for some steps, into memory of the test.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "io/file/shared_maps.h"
#include "server/engine/plan/plan.h"
#include "server/engine/run/executor.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock::test {

struct Batch {
  StepInfo info;
  // The bytes of all rows; of a tensor that is not fixed, its parts one after another.
  std::vector<std::string> tensors;
  // The parts of those tensors; of a fixed one, its values.
  std::vector<std::vector<std::string>> parts;

  // The values of one tensor.
  template <typename T>
  std::vector<T> As(size_t tensor) const {
    const T* begin = reinterpret_cast<const T*>(tensors[tensor].data());
    return {begin, begin + tensors[tensor].size() / sizeof(T)};
  }
  // The values of one tensor of strings.
  std::vector<std::string> Strings(size_t tensor) const;

  // Whatever its cursor is.
  bool operator==(const Batch& other) const {
    return info.step == other.info.step && info.epoch == other.info.epoch &&
           info.rows == other.info.rows && info.shape_rows == other.info.shape_rows &&
           parts == other.parts;
  }
};

struct RunOptions {
  int workers = 2;
  int slots = 3;
  uint64_t max_steps = 1000;  // the run is stopped behind them
  std::string cursor = {};    // to go on from; "": from the beginning
  bool allow_changed_work = false;
  // As ExecutorOptions has them.
  std::shared_ptr<SharedPrefixes> prefixes = nullptr;
  std::string pipeline = {};
  std::shared_ptr<SharedMaps> maps = std::make_shared<SharedMaps>(UINT64_MAX);
  std::function<void(const std::string&)> notice = nullptr;
};

struct RunResult {
  std::vector<Batch> batches;
  bool finished = false;     // the stream ended by itself
  absl::Status status;       // how
  ExecutorStats stats = {};  // at the end
  std::vector<SkippedPlace> skipped = {};
};

absl::StatusOr<std::shared_ptr<const Plan>> PlanText(const std::string& spec_text,
                                                     FileSystem& files = LocalFileSystem());
// Why the options' cursor is refused, if it is.
absl::StatusOr<RunResult> TryRunPlan(std::shared_ptr<const Plan> plan,
                                     const RunOptions& options = {});
// REQUIREs that the cursor is accepted.
RunResult RunPlan(std::shared_ptr<const Plan> plan, const RunOptions& options = {});
// All of them at once; each goes on until it has ended or has made its steps, and is there until
// all have.
struct PlannedRun {
  std::shared_ptr<const Plan> plan;
  RunOptions options;
};
std::vector<RunResult> RunTogether(const std::vector<PlannedRun>& runs);
// REQUIREs that the spec is accepted.
RunResult RunText(const std::string& spec_text, const RunOptions& options = {});

// A cursor but for the number of records, which it has when there happens to be an index.
std::string WithoutCounts(const std::string& cursor);

// All values of an int64 tensor, batch after batch.
std::vector<int64_t> Int64s(const RunResult& result, size_t tensor = 0);

}  // namespace penstock::test
