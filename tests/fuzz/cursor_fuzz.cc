// Looks for bytes that the decoder of cursors should not take, and for counters with which a
// pipeline crashes or never returns.
//
// The first byte says how the rest is used: as a whole cursor; as a cursor's message, to which a
// right checksum is made; or as the counters of a position, eight bytes each, with which a small
// pipeline goes on.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "io/file/crc32c.h"
#include "server/engine/run/stepped_executor.h"
#include "tests/sim/shard_pool.h"
#include "tests/sim/simulated_files.h"
#include "tests/sim/simulated_sink.h"
#include "tests/support/stages.h"

// Pipelines that went on from counters, for a test that this happens at all.
uint64_t resumed_pipelines = 0;

namespace {

using namespace penstock;

constexpr char kMagic[] = "PNSC";
constexpr uint64_t kSteps = 4;
constexpr int kParts =
    3000;  // of the work of a resumed pipeline; a front that never returns is libFuzzer's to find

const char* const kPipelines[] = {
    "tfrecord { files: '/proc/none/*' cycle_length: 2 block_length: 3 } | shuffle { buffer_size: 7 "
    "seed: 1 } "
    "| repeat { count: 3 } | batch { batch_size: 4 }",
    "tfrecord { files: '/proc/none/*' } | shuffle { global: true seed: 2 } | enumerate {} | shard "
    "{ num_shards: 3 index: 1 } | repeat {}",
    "range { stop: 40 } | concatenate { (| range { stop: 9 } |) } | zip { (| range { stop: 90 } | "
    "skip { count: 3 } |) } | take { count: 30 } | repeat {} "
    "| shuffle { buffer_size: 5 seed: 3 } | batch { batch_size: 6 }",
};

struct Pipeline {
  std::shared_ptr<const Plan> plan;
  v1::Fingerprint fingerprint;
};

const std::vector<Pipeline>& Pipelines() {
  static test::SimulatedFiles files;
  static const std::vector<Pipeline> pipelines = [] {
    google::protobuf::SetLogHandler(nullptr);
    setenv("PENSTOCK_CACHE_DIR", "/proc/none", 1);
    for (size_t i = 0; i < 12; ++i) {
      if (test::ShardPool()[i].state == test::PooledShard::State::kWhole)
        files.Add("/proc/none/" + std::to_string(i), test::ShardPool()[i].bytes);
    }
    std::vector<Pipeline> made;
    for (const char* text : kPipelines) {
      v1::PipelineSpec spec;
      if (!google::protobuf::TextFormat::ParseFromString(test::Stages(text), &spec)) std::abort();
      auto plan = MakePlan(spec, files);
      if (!plan.ok()) std::abort();
      made.push_back({*plan, *FingerprintOf(**plan)});
    }
    return made;
  }();
  return pipelines;
}

void Resume(const Pipeline& pipeline, const ResumePoint& point) {
  if (point.step > UINT64_MAX - kSteps) return;
  test::SimulatedSink sink(*pipeline.plan, 2, 1, point.step, point.step + kSteps, nullptr);
  ExecutorOptions options;
  options.fingerprint = pipeline.fingerprint;
  options.start = point;
  options.workers = 1;
  const auto executor = SteppedExecutor::Create(pipeline.plan, sink, options);
  if (!executor.ok()) return;
  ++resumed_pipelines;
  (*executor)->BeginSteps();
  for (int part = 0; part < kParts && !sink.finished() && sink.next_step() < point.step + kSteps;
       ++part) {
    (void)(*executor)->StepWorker(0);
    sink.Drain();
  }
  if (sink.complaint().empty()) return;
  std::fprintf(stderr, "%s\n", sink.complaint().c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const Pipeline& pipeline = Pipelines()[data[0] % 4 % std::size(kPipelines)];
  const std::string rest(reinterpret_cast<const char*>(data + 1), size - 1);
  const int use = data[0] / 4 % 3;
  if (use == 2) {
    std::vector<uint64_t> counters(rest.size() / 8);
    if (!counters.empty()) std::memcpy(counters.data(), rest.data(), counters.size() * 8);
    const auto cursor = CursorMaker(pipeline.fingerprint).Make(7, Position(counters));
    if (!cursor.ok()) return 0;
    const auto point = ReadCursor(*cursor, pipeline.fingerprint);
    if (!point.ok() || point->step != 7 || point->position.counters() != counters) std::abort();
    Resume(pipeline, *point);
    return 0;
  }
  std::string cursor = rest;
  if (use == 1) {
    const uint32_t crc =
        MaskCrc32c(Crc32c(reinterpret_cast<const uint8_t*>(rest.data()), rest.size()));
    cursor = kMagic + std::string(reinterpret_cast<const char*>(&crc), 4) + rest;
  }
  // Of its own stream, as far as it says.
  v1::Cursor message;
  v1::Fingerprint expected = pipeline.fingerprint;
  if (cursor.size() > 8 && message.ParseFromString(cursor.substr(8)))
    expected = message.fingerprint();
  const auto point = ReadCursor(cursor, expected);
  if (point.ok()) Resume(pipeline, *point);
  (void)ReadCursor(cursor, pipeline.fingerprint, ChangedWork::kAllow);
  return 0;
}
