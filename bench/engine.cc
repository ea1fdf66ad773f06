// The engine alone: a spec run in this process into slots that are free again at once.
//
//   bench_engine --spec FILE [--files GLOB] [--workers N] [--seconds S] [--slots N]
//
// Prints {"examples_per_s": …, "cpu_s_per_million": …, "seconds": …}, measured from the first batch on.
#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>

#include "google/protobuf/text_format.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/base/file.h"
#include "server/base/memory_block.h"
#include "server/base/tick_clock.h"
#include "server/engine/executor.h"

namespace penstock::bench {
namespace {

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "bench_engine: %s\n", message.c_str());
  std::exit(1);
}

// Slots that no consumer looks at, taken by turns.
class FreeSlots final : public BatchSink {
 public:
  FreeSlots(const Plan& plan, int slots) : slots_(slots) {
    constexpr size_t kSpare = 64;
    for (const BatchTensor& tensor : plan.tensors()) {
      offsets_.push_back(stride_);
      stride_ += (NumBytes(tensor.type).value() + kSpare + 63) / 64 * 64;
    }
    memory_ = AllocateMemoryBlock(stride_ * slots);
  }

  bool TryClaim(ClaimedSlot* slot) override {
    if (claimed_ - published_.load() == static_cast<uint64_t>(slots_)) return false;
    slot->slot = static_cast<int>(claimed_++ % slots_);
    slot->tensors.clear();
    for (const size_t offset : offsets_)
      slot->tensors.push_back(memory_.get() + slot->slot * stride_ + offset);
    return true;
  }
  void Publish(const ClaimedSlot&, const StepInfo& info) override {
    rows_.fetch_add(info.rows);
    published_.fetch_add(1);
  }
  void Finish(const absl::Status& status) override {
    if (!status.ok()) Die(status.ToString());
    Die("the stream ended: the spec must repeat without end");
  }
  void WaitForSlot(absl::Duration) override {}
  void Interrupt() override {}

  uint64_t rows() const { return rows_.load(); }

 private:
  const int slots_;
  size_t stride_ = 0;
  std::vector<size_t> offsets_;
  MemoryBlock memory_;
  uint64_t claimed_ = 0;
  std::atomic<uint64_t> published_{0};
  std::atomic<uint64_t> rows_{0};
};

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
    } else {
      Die("unknown flag " + name);
    }
  }
  std::ifstream file(spec_file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  v1::PipelineSpec spec;
  if (text.empty() || !google::protobuf::TextFormat::ParseFromString(text, &spec))
    Die("--spec: no spec in " + spec_file);
  if (!files.empty()) {
    v1::Tfrecord& source = *spec.mutable_stage(0)->mutable_tfrecord();
    source.clear_files();
    source.add_files(files);
  }
  absl::StatusOr<std::shared_ptr<const Plan>> plan = MakePlan(spec, LocalFileSystem());
  if (!plan.ok()) Die(plan.status().ToString());
  FreeSlots sink(**plan, slots);
  std::unique_ptr<Executor> executor = *Executor::Create(*plan, sink, options);
  executor->Start();
  while (sink.rows() == 0) std::this_thread::yield();
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
