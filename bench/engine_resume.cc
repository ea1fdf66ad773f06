// How long a stream takes to go on from a cursor, in a process whose plan is made and whose files
// are in the page cache.
//
//   bench_engine_resume --spec FILE [--files GLOB] [--step N] [--runs N]
//
// The stream is run up to step N once; then, by turns, it is started from its beginning and from
// the cursor of step N, each up to its first batch. Prints {"resume_ms": …, "start_ms": …,
// "cursor_bytes": …, "fingerprint_ms": …, "runs": …}: medians. What a new process needs besides is
// the plan and the fingerprint of the files, which it compares the cursor with.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/tick_clock.h"
#include "bench/free_slots.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/run/executor.h"

namespace penstock::bench {
namespace {

using SharedPlan = std::shared_ptr<const Plan>;

double MillisSince(uint64_t begin) { return static_cast<double>(MonotonicNanos() - begin) * 1e-6; }

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::unique_ptr<Executor> Start(const SharedPlan& plan, FreeSlots& sink,
                                const v1::Fingerprint& fingerprint, const std::string& cursor) {
  ExecutorOptions options;
  options.fingerprint = fingerprint;
  if (!cursor.empty()) {
    absl::StatusOr<ResumePoint> start = ReadCursor(cursor, fingerprint);
    if (!start.ok()) Die(start.status().ToString());
    options.start = *std::move(start);
  }
  absl::StatusOr<std::unique_ptr<Executor>> executor = Executor::Create(plan, sink, options);
  if (!executor.ok()) Die(executor.status().ToString());
  if (const absl::Status started = (*executor)->Start(); !started.ok()) Die(started.ToString());
  return *std::move(executor);
}

double MillisToFirstBatch(const SharedPlan& plan, const v1::Fingerprint& fingerprint,
                          const std::string& cursor) {
  FreeSlots sink(*plan, 3);
  const uint64_t begin = MonotonicNanos();
  const std::unique_ptr<Executor> executor = Start(plan, sink, fingerprint, cursor);
  while (sink.steps() == 0) std::this_thread::yield();
  return MillisSince(begin);
}

int Main(int argc, char** argv) {
  std::string spec_file, files;
  uint64_t step = 1000;
  int runs = 15;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--spec") {
      spec_file = value;
    } else if (name == "--files") {
      files = value;
    } else if (name == "--step") {
      step = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--runs") {
      runs = std::atoi(value.c_str());
    } else {
      Die("unknown flag " + name);
    }
  }
  if (step < 1 || runs < 1) Die("--step and --runs: expected at least 1");
  absl::StatusOr<SharedPlan> plan = MakePlan(ReadSpec(spec_file, files), LocalFileSystem());
  if (!plan.ok()) Die(plan.status().ToString());
  // As where a pipeline is made: the fingerprint needs the same indices as the resume.
  const std::shared_ptr<void> indices = (*plan)->KeepIndices();
  absl::StatusOr<v1::Fingerprint> fingerprint = FingerprintOf(**plan);
  if (!fingerprint.ok()) Die(fingerprint.status().ToString());
  std::string cursor;
  {
    FreeSlots sink(**plan, 3);
    sink.KeepCursor(step);
    const std::unique_ptr<Executor> executor = Start(*plan, sink, *fingerprint, "");
    while (sink.steps() < step) std::this_thread::yield();
    executor->Stop();
    cursor = sink.cursor();
  }
  std::vector<double> resumed, started, fingerprints;
  for (int run = 0; run < runs; ++run) {
    started.push_back(MillisToFirstBatch(*plan, *fingerprint, ""));
    resumed.push_back(MillisToFirstBatch(*plan, *fingerprint, cursor));
    absl::StatusOr<SharedPlan> again = MakePlan(ReadSpec(spec_file, files), LocalFileSystem());
    const uint64_t begin = MonotonicNanos();
    if (!FingerprintOf(**again).ok()) Die("the files changed");
    fingerprints.push_back(MillisSince(begin));
  }
  std::printf(
      "{\"resume_ms\": %.3f, \"start_ms\": %.3f, \"cursor_bytes\": %zu, \"fingerprint_ms\": %.3f, "
      "\"runs\": %d}\n",
      Median(resumed), Median(started), cursor.size(), Median(fingerprints), runs);
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
