// What `pack` alone costs, and how much padding it makes.
//
//   bench_text_pack --spec FILE [--steps N] [--workers N]
//
// Runs the spec for N steps, with slots that are free again at once, and prints what its first
// stage that packs has done: {"ns_per_token": …, "cpu_ns_per_token": …, "tokens": …, "padding": …,
// "sequences": …, "documents": …, "seconds": …}. The time is that of all workers inside of the
// stage: measuring documents, choosing their sequences, and writing the rows; on a busy machine it
// has that of others in it. The processor time is the whole process', in which documents are made
// too. `padding` is a part of all tokens.
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/tick_clock.h"
#include "bench/free_slots.h"
#include "server/engine/run/executor.h"

namespace penstock::bench {
namespace {

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int Main(int argc, char** argv) {
  std::string spec_file;
  uint64_t steps = 1000;
  ExecutorOptions options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--spec") {
      spec_file = value;
    } else if (name == "--steps") {
      steps = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--workers") {
      options.workers = std::atoi(value.c_str());
    } else {
      Die("unknown flag " + name);
    }
  }
  absl::StatusOr<std::shared_ptr<const Plan>> plan =
      MakePlan(ReadSpec(spec_file, ""), LocalFileSystem());
  if (!plan.ok()) Die(plan.status().ToString());
  FreeSlots sink(**plan, 4);
  absl::StatusOr<std::unique_ptr<Executor>> executor = Executor::Create(*plan, sink, options);
  if (!executor.ok()) Die(executor.status().ToString());
  const uint64_t begin = MonotonicNanos();
  const double cpu_begin = ProcessorSeconds();
  if (const absl::Status started = (*executor)->Start(); !started.ok()) Die(started.ToString());
  while (sink.steps() < steps) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double cpu_seconds = ProcessorSeconds() - cpu_begin;
  const double seconds = static_cast<double>(MonotonicNanos() - begin) * 1e-9;
  (*executor)->Stop();
  for (const StageStats& stage : (*executor)->Snapshot().stages) {
    const PackedStats& packed = stage.packed;
    if (packed.tokens == 0) continue;
    const auto all = static_cast<double>(packed.tokens + packed.padding);
    std::printf(
        "{\"ns_per_token\": %.3f, \"cpu_ns_per_token\": %.3f, \"tokens\": %llu, \"padding\": %.6f, "
        "\"sequences\": %llu, "
        "\"documents\": %llu, \"seconds\": %.3f}\n",
        static_cast<double>(stage.busy_ns) / static_cast<double>(packed.tokens),
        cpu_seconds * 1e9 / static_cast<double>(packed.tokens),
        static_cast<unsigned long long>(packed.tokens), static_cast<double>(packed.padding) / all,
        static_cast<unsigned long long>(packed.sequences),
        static_cast<unsigned long long>(packed.documents), seconds);
    return 0;
  }
  Die("no stage has packed anything");
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
