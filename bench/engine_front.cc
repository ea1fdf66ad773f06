// The front alone: which record fills which row of which step, and nothing else. Only the time
// inside Front::Assemble() and Front::Release() counts; what it asks to be read is read in between,
// unmeasured.
//
//   bench_engine_front [--files GLOB] [--count N] [--records N] [--shuffle N]
//
// Without files the elements are the numbers from 0 to N: `range`, shuffle, batch of 512, without
// end; the pass over them is begun anew as often as it takes to have `--records` of them. With
// files: 8 shards in turns in front of the same. Prints {"ns_per_record": …, "records": …}.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/tick_clock.h"
#include "google/protobuf/text_format.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/read/read_queue.h"
#include "server/engine/run/front.h"

namespace penstock::bench {
namespace {

constexpr int kBatch = 512;
constexpr int kFilesAtOnce = 8;

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "bench_engine_front: %s\n", message.c_str());
  std::exit(1);
}

struct Flags {
  std::string files;
  int64_t count = 100000;
  uint64_t records = 10000000;
  int64_t shuffle = 10000;
};

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--files") {
      flags.files = value;
    } else if (name == "--count") {
      flags.count = std::atoll(value.c_str());
    } else if (name == "--records") {
      flags.records = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--shuffle") {
      flags.shuffle = std::atoll(value.c_str());
    } else {
      Die("unknown flag " + name);
    }
  }
  if (argc % 2 == 0) Die("a flag without a value: " + std::string(argv[argc - 1]));
  return flags;
}

std::shared_ptr<const PlanImpl> Compile(const Flags& flags) {
  const std::string source = flags.files.empty()
                                 ? absl::StrCat("range { stop: ", flags.count, " }")
                                 : absl::StrCat("tfrecord { files: '", flags.files,
                                                "' cycle_length: ", kFilesAtOnce, " }");
  const std::string rows =
      flags.files.empty() ? "" : "stage { parse_example { feature { key: 's' int64 {} } } } ";
  const std::string text =
      absl::StrCat("stage { ", source, " } stage { shuffle { buffer_size: ", flags.shuffle,
                   " seed: 7 } } ", rows, "stage { batch { batch_size: ", kBatch,
                   " drop_remainder: true } } stage { repeat {} }");
  v1::PipelineSpec spec;
  if (!google::protobuf::TextFormat::ParseFromString(text, &spec)) Die("no spec: " + text);
  absl::StatusOr<std::shared_ptr<const Plan>> plan = MakePlan(spec, LocalFileSystem());
  if (!plan.ok()) Die(plan.status().ToString());
  return std::static_pointer_cast<const PlanImpl>(*plan);
}

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  const std::shared_ptr<const PlanImpl> plan = Compile(flags);
  FileTable files(plan->files(), plan->manifest());
  RecordStore store;
  ReadQueue reads;
  SectionQueue sections;
  DamageLog damage;
  ChunkReader reader(store);
  const std::atomic<bool> cancelled{false};
  Front front(*plan, files, store, reads, sections, damage, cancelled);
  StageClock clock(static_cast<int>(plan->stage_names().size()));
  front.set_clock(&clock);

  Step step;
  uint64_t records = 0;
  uint64_t measured_ns = 0;
  // The buffer's first filling is no part of it.
  bool warm = false;
  while (records < flags.records) {
    const uint64_t start = MonotonicNanos();
    const Pulled result = front.Assemble(&step);
    const uint64_t rows = step.records.size();
    if (result == Pulled::kSome) front.Release(&step);
    const uint64_t end = MonotonicNanos();
    if (warm) measured_ns += end - start;
    if (result == Pulled::kFailed || result == Pulled::kEnd) Die(front.status().ToString());
    if (result == Pulled::kSome) {
      if (warm) records += rows;
      warm = true;
    }
    while (ReadRequest* request = reads.Pop()) reader.Run(request);
  }
  std::printf("{\"ns_per_record\": %.3f, \"records\": %llu}\n",
              static_cast<double>(measured_ns) / static_cast<double>(records),
              static_cast<unsigned long long>(records));
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
