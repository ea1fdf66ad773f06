// What two processes do with one device's memory and events: the program starts itself as the other
// one.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "cuda/event.h"
#include "cuda/shared_memory.h"
#include "ring/futex.h"
#include "tests/cuda/device/real_device.h"

namespace penstock::cuda {
namespace {

using ring::MonotonicNs;
using ring::Status;

constexpr uint64_t kBytes = 64 << 20;
constexpr uint64_t kRound = 1 << 20;
constexpr int kSocket = 3;  // of the other process
constexpr uint32_t kSeed = 9;

// What the exporter tells; a descriptor travels beside it where `mapped_bytes` is not 0.
struct Told {
  uint64_t mapped_bytes;
  IpcMemory memory;
  IpcEvent event;
};

void Send(int socket, const Told& told, int descriptor) {
  iovec part = {const_cast<Told*>(&told), sizeof told};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }
  REQUIRE(sendmsg(socket, &message, 0) == sizeof told);
}

int Receive(int socket, Told* told) {
  iovec part = {told, sizeof *told};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  REQUIRE(recvmsg(socket, &message, MSG_WAITALL) == sizeof *told);
  int descriptor = -1;
  if (const cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr)
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
  return descriptor;
}

// The exporter: a process of its own, so that it can be killed. It enqueues what it is told to, a
// letter at a time, records the event behind it, and says so: a letter of the alphabet's first half
// is a pattern of that seed in the memory's first kRound bytes, 's' what takes long.
struct Exporter {
  explicit Exporter(const std::string& driver) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    socket = ends[0];
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      dup2(ends[1], kSocket);
      if (ends[1] == kSocket) fcntl(kSocket, F_SETFD, 0);
      setenv("PENSTOCK_CUDA_DRIVER", driver.c_str(), 1);
      execl(ProgramPath(), ProgramPath(), "[.exporter]", nullptr);
      _exit(1);
    }
    close(ends[1]);
  }
  ~Exporter() {
    Kill();
    close(socket);
  }
  void Enqueue(char what) const {
    char done = 0;
    REQUIRE(write(socket, &what, 1) == 1);
    REQUIRE(read(socket, &done, 1) == 1);
    REQUIRE(done == what);
  }
  void Kill() {
    if (pid < 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = -1;
  }

  int socket = -1;
  pid_t pid = -1;
};

struct Imported {
  explicit Imported(const Exporter& exporter, const std::string& driver) : device(Open(driver)) {
    const int descriptor = Receive(exporter.socket, &told);
    const Status opened = told.mapped_bytes != 0
                              ? SharedMemory::Open(device, descriptor, told.mapped_bytes, &memory)
                              : SharedMemory::Open(device, told.memory, &memory);
    INFO(opened.message);
    REQUIRE(opened.ok());
    if (descriptor >= 0) close(descriptor);
    const Status status = Event::Open(device, told.event, &event);
    INFO(status.message);
    REQUIRE(status.ok());
  }

  // How long the event takes to be over; nothing within ten seconds.
  const char* Wait(Status* error) const {
    const uint64_t end_ns = MonotonicNs() + 10'000'000'000;
    while (MonotonicNs() < end_ns) {
      const Event::State state = event->Look(error);
      if (state == Event::State::kOver) return "over";
      if (state == Event::State::kFailed) return "failed";
      poll(nullptr, 0, 1);
    }
    return "waits";
  }

  const std::shared_ptr<const Device> device;
  Told told;
  std::unique_ptr<SharedMemory> memory;
  std::unique_ptr<Event> event;
};

std::string Way(int way) {
  return way == 0 ? DriverLibrary() : LibraryBeside("libcuda_by_handles.so");
}

TEST_CASE("another process's memory and event are opened, more than once") {
  const int way = GENERATE(0, 1);
  INFO("driver " << Way(way));
  const Exporter exporter(Way(way));
  const Imported imported(exporter, Way(way));
  CHECK((imported.told.mapped_bytes == 0 || way == 0));
  // Two loaders of one process do that.
  std::unique_ptr<Event> again;
  Status status = Event::Open(imported.device, imported.told.event, &again);
  INFO("the event a second time: " << status.message);
  CHECK(status.ok());
  std::unique_ptr<SharedMemory> memory;
  if (imported.told.mapped_bytes == 0) {
    status = SharedMemory::Open(imported.device, imported.told.memory, &memory);
    INFO("the memory a second time: " << status.message);
    CHECK(status.ok());
  }
  Status error;
  CHECK(std::string(imported.Wait(&error)) == "over");
  CHECK((Read(*imported.device, imported.memory->address(), kBytes) == Pattern(kBytes, kSeed)));
  if (memory != nullptr) {
    CHECK((Read(*imported.device, memory->address(), 4096) == Pattern(4096, kSeed)));
  }
}

TEST_CASE("an event that was opened once is over each time that it was recorded anew") {
  const int way = GENERATE(0, 1);
  INFO("driver " << Way(way));
  const Exporter exporter(Way(way));
  const Imported imported(exporter, Way(way));
  int waited = 0;
  Status error;
  for (int round = 0; round < 60; ++round) {
    const auto letter = static_cast<char>('a' + round % 13);
    exporter.Enqueue(letter);
    waited += imported.event->Look(&error) == Event::State::kWaits ? 1 : 0;
    CHECK(std::string(imported.Wait(&error)) == "over");
    const std::vector<uint8_t> want = Pattern(kRound, static_cast<uint32_t>(letter));
    CHECK((Read(*imported.device, imported.memory->address(), kRound) == want));
  }
  constexpr int kLooks = 2000;
  const uint64_t start_ns = MonotonicNs();
  for (int i = 0; i < kLooks; ++i) imported.event->Look(&error);
  const uint64_t look_ns = (MonotonicNs() - start_ns) / kLooks;
  WARN("way " << way << ": of 60 copies " << waited << " were waited for; a look takes " << look_ns
              << " ns");
  // A stream of this process may wait for it, too.
  exporter.Enqueue('b');
  CHECK(imported.event->HoldBack(nullptr).ok());
  const std::vector<uint8_t> want = Pattern(kRound, static_cast<uint32_t>('b'));
  CHECK((Read(*imported.device, imported.memory->address(), kRound) == want));
}

TEST_CASE("a killed exporter's memory stays, and its event lets itself be looked at") {
  const int way = GENERATE(0, 1);
  const char what = GENERATE('c', 's');
  INFO("driver " << Way(way) << ", " << what);
  Exporter exporter(Way(way));
  const Imported imported(exporter, Way(way));
  Status error;
  exporter.Enqueue(what);
  if (what == 'c') CHECK(std::string(imported.Wait(&error)) == "over");
  exporter.Kill();
  // Nothing is promised about it, save that the call returns: the client goes by the daemon's
  // socket.
  WARN("way " << way << ", " << (what == 's' ? "killed while it copied" : "killed behind its copy")
              << ": its event " << imported.Wait(&error) << " " << error.message);
  if (what == 'c') {
    const std::vector<uint8_t> want = Pattern(kRound, static_cast<uint32_t>(what));
    CHECK((Read(*imported.device, imported.memory->address(), kRound) == want));
  }
  // This process's work is not held up.
  const Memory own(imported.device, 4096);
  const std::vector<uint8_t> bytes = Pattern(4096, 4);
  Write(*imported.device, own.address(), bytes.data(), bytes.size());
  CHECK(Read(*imported.device, own.address(), bytes.size()) == bytes);
}

TEST_CASE("the exporter", "[.exporter]") {
  const auto device = Open();
  std::unique_ptr<SharedMemory> memory;
  REQUIRE(SharedMemory::Create(device, kBytes, &memory).ok());
  std::unique_ptr<Event> event;
  REQUIRE(Event::Create(device, kEventInterprocess, &event).ok());
  Told told = {};
  if (memory->descriptor() >= 0) {
    told.mapped_bytes = memory->bytes();
  } else {
    REQUIRE(memory->Handle(&told.memory).ok());
  }
  REQUIRE(event->Handle(&told.event).ok());
  const Entered entered(*device);
  StreamHandle stream = nullptr;
  MUST(device, StreamCreate(&stream, kStreamNonBlocking), "a stream");
  void* pinned = nullptr;
  MUST(device, MemHostAlloc(&pinned, kBytes, 0), "pinned memory");
  size_t free_bytes = 0, total_bytes = 0;
  MUST(device, MemGetInfo(&free_bytes, &total_bytes), "free memory");
  const uint64_t part = std::min<uint64_t>(free_bytes / 4, uint64_t{4} << 30);
  const Memory other(device, 2 * part);
  const auto fill = [&](uint64_t bytes, uint32_t seed) {
    MUST(device, StreamSynchronize(stream), "what was enqueued");
    const std::vector<uint8_t> pattern = Pattern(bytes, seed);
    std::memcpy(pinned, pattern.data(), bytes);
  };
  const auto take_long = [&](int times) {
    for (int i = 0; i < times; ++i) {
      MUST(device, MemcpyDtoDAsync(other.address(), other.address() + part, part, stream),
           "a copy");
    }
  };
  fill(kBytes, kSeed);
  MUST(device, MemcpyHtoDAsync(memory->address(), pinned, kBytes, stream), "a copy");
  REQUIRE(event->Record(stream).ok());
  Send(kSocket, told, memory->descriptor());
  char what = 0;
  while (read(kSocket, &what, 1) == 1) {
    if (what == 's') {
      take_long(100);
    } else {
      fill(kRound, static_cast<uint32_t>(what));
      take_long(2);
      MUST(device, MemcpyHtoDAsync(memory->address(), pinned, kRound, stream), "a copy");
    }
    REQUIRE(event->Record(stream).ok());
    REQUIRE(write(kSocket, &what, 1) == 1);
  }
}

}  // namespace
}  // namespace penstock::cuda
