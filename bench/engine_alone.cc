// The engine alone: a spec run in this process into slots that are free again at once.
//
//   bench_engine_alone --spec FILE [--files GLOB] [--workers N] [--seconds S] [--slots N] [--after ROWS]
//
// Prints {"examples_per_s": …, "cpu_s_per_million": …, "seconds": …}, measured from the first batch
// on that comes behind so many rows.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/tick_clock.h"
#include "bench/free_slots.h"
#include "io/file/shared_maps.h"
#include "server/engine/run/executor.h"

namespace penstock::bench {
namespace {

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int Main(int argc, char** argv) {
  std::string spec_file, files;
  double seconds = 3;
  ExecutorOptions options;
  int slots = 3;
  uint64_t after = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--spec") {
      spec_file = value;
    } else if (name == "--files") {
      files = value;
    } else if (name == "--workers") {
      options.workers = std::atoi(value.c_str());
    } else if (name == "--seconds") {
      seconds = std::atof(value.c_str());
    } else if (name == "--slots") {
      slots = std::atoi(value.c_str());
    } else if (name == "--after") {
      after = std::strtoull(value.c_str(), nullptr, 10);
    } else {
      Die("unknown flag " + name);
    }
  }
  const v1::PipelineSpec spec = ReadSpec(spec_file, files);
  absl::StatusOr<std::shared_ptr<const Plan>> plan = MakePlan(spec, LocalFileSystem());
  if (!plan.ok()) Die(plan.status().ToString());
  options.maps = std::make_shared<SharedMaps>(UINT64_MAX);
  FreeSlots sink(**plan, slots);
  std::unique_ptr<Executor> executor = *Executor::Create(*plan, sink, options);
  if (const absl::Status started = executor->Start(); !started.ok()) Die(started.ToString());
  while (sink.rows() <= after) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const uint64_t rows = sink.rows();
  const double cpu = CpuSeconds();
  const uint64_t start = MonotonicNanos();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double passed = (MonotonicNanos() - start) * 1e-9;
  const double done = static_cast<double>(sink.rows() - rows);
  std::printf("{\"examples_per_s\": %.0f, \"cpu_s_per_million\": %.4f, \"seconds\": %.2f}\n",
              done / passed, (CpuSeconds() - cpu) / done * 1e6, passed);
  std::fflush(stdout);
  std::_Exit(0);
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
