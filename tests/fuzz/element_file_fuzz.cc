// Looks for files of saved elements that are believed and should not be, with which a pipeline
// crashes or never returns. Their checksums are put right, so that what lies behind them is
// reached. Fault 31.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "io/element/element_bytes.h"
#include "io/element/element_file.h"
#include "io/file/crc32c.h"
#include "io/record/tfrecord_frame.h"
#include "server/engine/run/stepped_executor.h"
#include "tests/sim/simulated_files.h"
#include "tests/sim/simulated_sink.h"
#include "tests/support/stages.h"

namespace {

using namespace penstock;

constexpr char kPath[] = "/proc/none/elements.penstock-elements";
constexpr uint64_t kSteps = 4;
constexpr uint64_t kSealedMax = 64;  // elements whose checksums are put right
constexpr int64_t kBatchBytesMax = 1 << 20;
constexpr int kParts = 3000;  // of the pipeline's work

uint32_t Masked(const uint8_t* begin, size_t size) { return MaskCrc32c(Crc32c(begin, size)); }

// REQUIRES: the file has a header and a footer.
void PutChecksumsRight(std::string* bytes) {
  auto* const file = reinterpret_cast<uint8_t*>(bytes->data());
  uint8_t* const footer = file + bytes->size() - kElementFooterBytes;
  const uint64_t footer_at = bytes->size() - kElementFooterBytes;
  std::memcpy(footer + 32, file + 16, 16);
  StoreU32(file + 60, Masked(file, 60));
  const uint64_t index_at = LoadU64(footer), elements = LoadU64(footer + 8);
  const uint64_t schema_at = LoadU64(footer + 16);
  if (schema_at <= index_at && index_at <= footer_at)
    StoreU32(footer + 28, Masked(file + schema_at, footer_at - schema_at));
  StoreU32(footer + 60, Masked(footer, 60));
  if (index_at > footer_at) return;
  const uint64_t sealed =
      std::min({elements, kSealedMax, (footer_at - index_at) / kElementIndexBytes});
  for (uint64_t i = 0; i < sealed; ++i) {
    const uint8_t* const entry = file + index_at + i * kElementIndexBytes;
    const uint64_t at = LoadU64(entry);
    const uint32_t length = LoadU32(entry + 24);
    if (at < kElementHeaderBytes + kElementFrameBytes || at > schema_at || schema_at > index_at ||
        length > schema_at - at)
      continue;
    uint8_t* const frame = file + at - kElementFrameBytes;
    StoreU32(frame, length);
    StoreU32(frame + 4, ElementCrc(file + at, length, LoadU64(frame + 8)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kElementHeaderBytes + kElementFooterBytes) return 0;
  google::protobuf::SetLogHandler(nullptr);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  PutChecksumsRight(&bytes);
  test::SimulatedFiles files;
  files.Add(kPath, std::make_shared<const std::string>(std::move(bytes)));
  v1::PipelineSpec spec;
  if (!google::protobuf::TextFormat::ParseFromString(
          test::Stages("load { path: '/proc/none' } | batch { batch_size: 2 }"), &spec))
    std::abort();
  const auto plan = MakePlan(spec, files);
  if (!plan.ok()) return 0;
  // Batches that are too large are refused by whoever makes their ring.
  for (const BatchTensor& tensor : (*plan)->tensors()) {
    if (tensor.fixed() && *NumBytes(tensor.type) > kBatchBytesMax) return 0;
  }
  const auto fingerprint = FingerprintOf(**plan);
  if (!fingerprint.ok()) return 0;
  test::SimulatedSink sink(**plan, 2, 1, 0, kSteps, nullptr);
  ExecutorOptions options;
  options.fingerprint = *fingerprint;
  options.workers = 1;
  const auto executor = SteppedExecutor::Create(*plan, sink, options);
  if (!executor.ok()) return 0;
  (*executor)->BeginSteps();
  for (int part = 0; part < kParts && !sink.finished() && sink.next_step() < kSteps; ++part) {
    (void)(*executor)->StepWorker(0);
    sink.Drain();
  }
  if (sink.complaint().empty()) return 0;
  std::fprintf(stderr, "%s\n", sink.complaint().c_str());
  std::abort();
}
