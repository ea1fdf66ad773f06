// A daemon without pipelines: publishes batches of a counted pattern, so that clients can be tested
// against known bytes, slow and failing producers, and a kill.
//
//   ring_server SOCKET [--name NAME] [--steps N] [--rows N] [--last-rows N] [--slots N]
//   [--slots-max N]
//               [--end-code N] [--end-message TEXT] [--hold-at N] [--wide FLOATS] [--id 0]
//
// A batch of step s: "x" float32 (rows, 4) = 1000 s + 10 row + column, "y" int64 (rows,) = 100 s +
// row, "flag" bool (rows,) = (s + row) odd, "id" uint64 () = s, but with --id 0; with --wide also
// "wide" float32 (rows, FLOATS), left at zero.
//
// It prints "ready" when it listens, stops producing at step --hold-at until a line comes on its
// standard input, and ends when that is closed.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "ring/layout.h"
#include "tests/support/attach_server.h"
#include "tests/support/given_options.h"

namespace {

using penstock::ring::Code;
using penstock::ring::TensorDType;
using penstock::ring::Writer;

struct Options {
  uint64_t steps = UINT64_MAX;
  uint64_t hold_at = UINT64_MAX;
  uint32_t rows = 8;
  uint32_t last_rows = 0;  // of the last step; 0: as the others
  int end_code = 0;
  bool with_id = true;
  std::string end_message;
};

uint8_t Code8(TensorDType dtype) { return static_cast<uint8_t>(dtype); }

void Fill(Writer* writer, int slot, uint64_t step, uint32_t rows, bool with_id) {
  auto* x = reinterpret_cast<float*>(writer->tensor(slot, 0));
  auto* y = reinterpret_cast<int64_t*>(writer->tensor(slot, 1));
  uint8_t* flag = writer->tensor(slot, 2);
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t column = 0; column < 4; ++column) {
      x[row * 4 + column] = static_cast<float>(1000 * step + 10 * row + column);
    }
    y[row] = static_cast<int64_t>(100 * step + row);
    flag[row] = (step + row) % 2;
  }
  if (with_id) *reinterpret_cast<uint64_t*>(writer->tensor(slot, 3)) = step;
}

void Produce(Writer* writer, const Options& options, const std::atomic<bool>& go,
             const std::atomic<bool>& stop) {
  for (uint64_t step = 0; step < options.steps && !stop; ++step) {
    while (step == options.hold_at && !go && !stop) writer->WaitForRelease(1'000'000);
    int slot;
    while ((slot = writer->TryClaim()) < 0) {
      if (stop) return;
      writer->WaitForRelease(UINT64_MAX);
    }
    const bool last = step + 1 == options.steps && options.last_rows != 0;
    const uint32_t rows = last ? options.last_rows : options.rows;
    Fill(writer, slot, step, rows, options.with_id);
    const std::string cursor = "cursor-" + std::to_string(step);
    writer->Publish(slot, {step, step / 10, rows, cursor});
  }
  if (!stop) writer->Finish(static_cast<Code>(options.end_code), options.end_message);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: ring_server SOCKET [--OPTION VALUE]...\n");
    return 2;
  }
  const penstock::GivenOptions given(argc, argv);
  Options options;
  options.steps = given.Number("--steps", UINT64_MAX);
  options.hold_at = given.Number("--hold-at", UINT64_MAX);
  options.rows = static_cast<uint32_t>(given.Number("--rows", 8));
  options.last_rows = static_cast<uint32_t>(given.Number("--last-rows", 0));
  options.with_id = given.Number("--id", 1) != 0;
  options.end_code = static_cast<int>(given.Number("--end-code", 0));
  options.end_message = given.Text("--end-message");

  const int64_t rows = options.rows;
  penstock::ring::SegmentOptions segment;
  segment.pipeline = given.Text("--name", "counted");
  segment.slots = static_cast<uint32_t>(given.Number("--slots", 3));
  segment.slots_max = static_cast<uint32_t>(given.Number("--slots-max", 9));
  segment.tensors = {{"x", Code8(TensorDType::kFloat32), true, {rows, 4}},
                     {"y", Code8(TensorDType::kInt64), true, {rows}},
                     {"flag", Code8(TensorDType::kBool), true, {rows}}};
  if (options.with_id) segment.tensors.push_back({"id", Code8(TensorDType::kUint64), false, {}});
  if (const uint64_t wide = given.Number("--wide", 0); wide != 0) {
    segment.tensors.push_back(
        {"wide", Code8(TensorDType::kFloat32), true, {rows, static_cast<int64_t>(wide)}});
  }
  std::unique_ptr<Writer> writer;
  if (auto status = Writer::Create(segment, &writer); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message.c_str());
    return 1;
  }
  penstock::AttachServer server(writer.get(), segment.pipeline, argv[1]);
  if (!server.Start()) {
    std::perror(argv[1]);
    return 1;
  }
  std::atomic<bool> go{false}, stop{false};
  std::thread producer([&] { Produce(writer.get(), options, go, stop); });
  std::puts("ready");
  std::fflush(stdout);
  char line[256];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    go = true;
    writer->Interrupt();
  }
  stop = true;
  writer->Interrupt();
  producer.join();
  return 0;
}
