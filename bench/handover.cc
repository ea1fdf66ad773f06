// The producer's half of the case handover_12MiB: batches that are filled once and then published
// at full rate, so that what is left is the hand-over itself.
//
//   handover SOCKET [BATCH_BYTES [SLOTS]]
//
// The pipeline is called "handover": "x" float32 (BATCH_BYTES / 4 / 512, 512) in rows, and "label"
// int64 (rows,). It prints "ready", publishes until its standard input is closed, and prints its
// own CPU seconds and the number of batches as JSON.
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "ring/layout.h"
#include "tests/support/attach_server.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: handover SOCKET [BATCH_BYTES [SLOTS]]\n");
    return 2;
  }
  using penstock::ring::TensorDType;
  constexpr int64_t kRowElements = 512;
  const int64_t batch_bytes = argc > 2 ? std::atoll(argv[2]) : int64_t{12} << 20;
  const int64_t rows = batch_bytes / 4 / kRowElements;
  penstock::ring::SegmentOptions options;
  options.pipeline = "handover";
  options.slots = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : 3;
  options.tensors = {{"x", static_cast<uint8_t>(TensorDType::kFloat32), true, {rows, kRowElements}},
                     {"label", static_cast<uint8_t>(TensorDType::kInt64), true, {rows}}};
  std::unique_ptr<penstock::ring::Writer> writer;
  if (auto status = penstock::ring::Writer::Create(options, &writer); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message.c_str());
    return 1;
  }
  penstock::AttachServer server(writer.get(), options.pipeline, argv[1]);
  if (!server.Start()) {
    std::perror(argv[1]);
    return 1;
  }
  std::atomic<bool> stop{false};
  uint64_t step = 0;
  std::thread producer([&] {
    while (!stop) {
      const int slot = writer->TryClaim();
      if (slot < 0) {
        writer->WaitForRelease(UINT64_MAX);
        continue;
      }
      // A slot is filled when it is used for the first time.
      if (step < options.slots_max)
        std::memset(writer->tensor(slot, 0), 1, static_cast<size_t>(batch_bytes));
      writer->Publish(slot, {step, 0, static_cast<uint32_t>(rows), {}});
      ++step;
    }
  });
  std::puts("ready");
  std::fflush(stdout);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
  }
  stop = true;
  writer->Interrupt();
  producer.join();
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const double cpu_seconds =
      static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
      1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  std::printf("{\"batches\": %llu, \"cpu_seconds\": %.6f}\n", static_cast<unsigned long long>(step),
              cpu_seconds);
  return 0;
}
