// How much later than by a copy of its own a trainer's process has a batch that the daemon copied
// to the device.
//
//   bench_cuda_handover [DEVICE]
//
// Three ways take turns, medians of kRounds rounds each; every round begins when the device has
// nothing to do:
//
//   plain   one process: a copy from pinned memory, and cuStreamSynchronize
//   looks   one process: the same, and it asks the copy's event until that is over
//   other   this process copies into shared device memory and records the event, as a ring on the
//           device does; another process, which has opened both, is told by a number in shared
//           memory and asks the event until it is over
//
// One line of JSON a size; without a device a line that says so, and nothing was measured.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "bench/cuda_measure.h"
#include "cuda/event.h"
#include "cuda/shared_memory.h"
#include "ring/futex.h"

namespace penstock::cuda {
namespace {

constexpr int kRounds = 400;
constexpr int kPageFd = 3;    // of the other process
constexpr int kMemoryFd = 4;  // where memory travels by descriptor
constexpr uint64_t kSizes[] = {64 << 10, 1 << 20, 9633792};

// What both processes see.
struct Page {
  std::atomic<uint32_t> ready;      // 1: the other process has opened what there is
  std::atomic<uint32_t> published;  // rounds whose copy is enqueued
  std::atomic<uint32_t> seen;       // rounds whose event the other process saw over
  uint64_t seen_ns;
  uint64_t mapped_bytes;
  IpcMemory memory;
  IpcEvent event;
};

void SpinUntil(const Event& event) {
  ring::Status error;
  while (event.Look(&error) == Event::State::kWaits) {
  }
  Must(error);
}

Page* MapPage(int fd) {
  void* page = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) std::exit(1);
  return static_cast<Page*>(page);
}

int Follow(int32_t ordinal, pid_t parent) {
  Page* page = MapPage(kPageFd);
  std::shared_ptr<const Device> device;
  Must(Device::Open(DriverLibrary(), ordinal, &device));
  std::unique_ptr<SharedMemory> memory;
  Must(page->mapped_bytes != 0 ? SharedMemory::Open(device, kMemoryFd, page->mapped_bytes, &memory)
                               : SharedMemory::Open(device, page->memory, &memory));
  std::unique_ptr<Event> event;
  Must(Event::Open(device, page->event, &event));
  page->ready = 1;
  for (uint32_t round = 1;; ++round) {
    while (page->published < round) {
      if (getppid() != parent) return 1;
    }
    if (page->published == UINT32_MAX) return 0;
    SpinUntil(*event);
    page->seen_ns = ring::MonotonicNs();
    page->seen = round;
  }
}

class Bench {
 public:
  Bench(std::shared_ptr<const Device> device, int32_t ordinal)
      : device_(std::move(device)), entered_(*device_), ordinal_(ordinal) {
    Must(device_->Check(driver().StreamCreate(&stream_, kStreamNonBlocking), "a stream"));
    Must(device_->Check(driver().MemHostAlloc(&pinned_, kSizes[std::size(kSizes) - 1], 0),
                        "pinned memory"));
    std::memset(pinned_, 1, kSizes[std::size(kSizes) - 1]);
    Must(SharedMemory::Create(device_, kSizes[std::size(kSizes) - 1], &memory_));
    Must(Event::Create(device_, kEventInterprocess, &event_));
    const int fd = memfd_create("bench-cuda-handover", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(Page)) != 0) std::exit(1);
    page_ = new (MapPage(fd)) Page();
    if (memory_->descriptor() >= 0) {
      page_->mapped_bytes = memory_->bytes();
    } else {
      Must(memory_->Handle(&page_->memory));
    }
    Must(event_->Handle(&page_->event));
    Start(fd);
  }
  ~Bench() {
    page_->published = UINT32_MAX;
    waitpid(follower_, nullptr, 0);
    driver().MemFreeHost(pinned_);
    driver().StreamDestroy(stream_);
  }

  void Measure(uint64_t bytes) {
    std::vector<double> plain, looks, other;
    for (int round = 0; round < kRounds; ++round) {
      plain.push_back(Round([&] {
        Enqueue(bytes);
        Must(device_->Check(driver().StreamSynchronize(stream_), "the copy"));
        return ring::MonotonicNs();
      }));
      looks.push_back(Round([&] {
        Enqueue(bytes);
        Must(event_->Record(stream_));
        SpinUntil(*event_);
        return ring::MonotonicNs();
      }));
      other.push_back(Round([&] {
        Enqueue(bytes);
        Must(event_->Record(stream_));
        const uint32_t number = ++page_->published;
        while (page_->seen != number) {
          if (waitpid(follower_, nullptr, WNOHANG) != 0) std::exit(1);
        }
        return page_->seen_ns;
      }));
    }
    std::printf(
        "{\"case\": \"hand_over_of_copies\", \"bytes\": %llu, \"by_descriptor\": %s, \"plain_us\": "
        "%.2f, "
        "\"looks_us\": %.2f, \"other_us\": %.2f, \"added_us\": %.2f}\n",
        static_cast<unsigned long long>(bytes), page_->mapped_bytes != 0 ? "true" : "false",
        Median(plain), Median(looks), Median(other), Median(other) - Median(plain));
    std::fflush(stdout);
  }

 private:
  const Driver& driver() const { return device_->driver(); }

  void Start(int page_fd) {
    const std::string parent = std::to_string(getpid());
    follower_ = fork();
    if (follower_ == 0) {
      // Above both places, so that neither is written over.
      const int page = fcntl(page_fd, F_DUPFD, 10);
      const int memory = memory_->descriptor() < 0 ? -1 : fcntl(memory_->descriptor(), F_DUPFD, 10);
      dup2(page, kPageFd);
      if (memory >= 0) dup2(memory, kMemoryFd);
      const std::string number = std::to_string(ordinal_);
      execl("/proc/self/exe", "bench_cuda_handover", number.c_str(), parent.c_str(), nullptr);
      _exit(1);
    }
    close(page_fd);
    while (page_->ready == 0) {
      if (waitpid(follower_, nullptr, WNOHANG) != 0) {
        std::fprintf(stderr, "bench_cuda_handover: the other process ended\n");
        std::exit(1);
      }
    }
  }

  void Enqueue(uint64_t bytes) {
    Must(device_->Check(driver().MemcpyHtoDAsync(memory_->address(), pinned_, bytes, stream_),
                        "a copy"));
  }

  // Microseconds until the time that `work` returns.
  template <typename Work>
  static double Round(Work work) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const uint64_t start_ns = ring::MonotonicNs();
    return static_cast<double>(work() - start_ns) * 1e-3;
  }

  const std::shared_ptr<const Device> device_;
  const Entered entered_;
  const int32_t ordinal_;
  StreamHandle stream_ = nullptr;
  void* pinned_ = nullptr;
  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<Event> event_;
  Page* page_ = nullptr;
  pid_t follower_ = -1;
};

int Run(int32_t ordinal) {
  std::shared_ptr<const Device> device;
  const ring::Status status = Device::Open(DriverLibrary(), ordinal, &device);
  if (!status.ok()) {
    std::printf("{\"case\": \"hand_over_of_copies\", \"not_run\": \"%s\"}\n",
                status.message.c_str());
    return 0;
  }
  Bench bench(device, ordinal);
  for (const uint64_t bytes : kSizes) bench.Measure(bytes);
  return 0;
}

}  // namespace
}  // namespace penstock::cuda

int main(int argc, char** argv) {
  const int32_t ordinal = argc > 1 ? std::atoi(argv[1]) : 0;
  return argc > 2 ? penstock::cuda::Follow(ordinal, std::atoi(argv[2]))
                  : penstock::cuda::Run(ordinal);
}
