// What a step of a helper costs on its way: `bench_helper_transport BYTES STEPS [FOLDER]`.
//
// Two processes on this machine: one that has a step ready and sends it as a helper does, and one
// that takes it as an asker does, into one of four slots. FOLDER holds certificate.pem, key.pem and
// authority.pem: then by TLS. Prints a line of JSON: processor seconds for each GiB of both.

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/monotonic_clock.h"
#include "penstock/v1/helpers.pb.h"
#include "server/helpers/helper_link.h"
#include "server/helpers/step_bytes.h"

namespace penstock {
namespace {

constexpr int kSlots = 4;
constexpr Wire::Patience kPatience{60'000, 0};

double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_utime.tv_sec + used.ru_stime.tv_sec +
         1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

std::shared_ptr<const TlsContext> Tls(TlsContext::Side side, const char* folder) {
  if (folder == nullptr) return nullptr;
  const std::string at = std::string(folder) + "/";
  auto made = TlsContext::Create(side, "bench",
                                 {at + "certificate.pem", at + "key.pem", at + "authority.pem"});
  if (made.ok()) return *std::move(made);
  std::fprintf(stderr, "%s\n", made.status().ToString().c_str());
  std::exit(1);
}

// Sends what it is asked for until the asker goes. The bytes are written anew and their checksum
// computed for each step, as they are where a step is made.
void Help(int listening, uint64_t bytes, const char* folder) {
  const auto tls = Tls(TlsContext::Side::kHelper, folder);
  pollfd waited{listening, POLLIN, 0};
  poll(&waited, 1, -1);
  ring::Descriptor socket(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK));
  TlsSession session;
  if (tls != nullptr) session = *tls->NewSession(socket.get(), "");
  const std::atomic<bool> stop{false};
  Wire wire(std::move(socket), std::move(session), stop, -1);
  std::string meta;
  absl::Status status = wire.Handshake(kPatience);
  if (status.ok()) status = wire.ReadFrame(&meta, kMaxMetaBytes, kPatience).status();
  if (status.ok()) status = wire.WriteFrame({FrameKind::kReady}, "", kPatience);
  std::vector<uint8_t> step(bytes, 7);
  v1::HelperStep told;
  told.set_rows(1);
  told.set_shape_rows(1);
  while (status.ok()) {
    if (wire.Wait(100) != Wire::Woken::kByBytes) {
      status = wire.WriteFrame({FrameKind::kAlive}, "", kPatience);
      continue;
    }
    const auto frame = wire.ReadFrame(&meta, 0, kPatience);
    status = frame.status();
    if (!status.ok() || frame->kind != FrameKind::kWant) continue;
    const absl::Span<const uint8_t> data(step);
    status = wire.WriteWithData({FrameKind::kStep, frame->step}, told.SerializeAsString(),
                                {&data, 1}, kPatience);
  }
}

// Waits for the end of one step.
class Ended final : public Completion::Sink {
 public:
  void End(absl::Status status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      std::exit(1);
    }
    is_over_ = true;
    changed_.notify_all();
  }
  void OnCancel(std::function<void()>) override {}
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return is_over_; });
    is_over_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
};

int Run(uint64_t bytes, int steps, const char* folder) {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listening, reinterpret_cast<sockaddr*>(&address), size) != 0) return 1;
  listen(listening, 4);
  getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size);
  const pid_t helper = fork();
  if (helper == 0) {
    Help(listening, bytes, folder);
    _exit(0);
  }
  auto known = KnownHelpers::Create({"127.0.0.1:" + std::to_string(ntohs(address.sin_port))});
  auto common = std::make_shared<HelperLink::Common>();
  BatchTensor tensor;
  tensor.name = "bytes";
  tensor.type.dtype = DType::kUint8;
  tensor.type.shape = {1, static_cast<int64_t>(bytes)};
  common->tensors = {tensor};
  common->tls = Tls(TlsContext::Side::kAsker, folder);
  common->hello = [](uint64_t* first) {
    *first = 0;
    return std::string();
  };
  common->passed = [] { return uint64_t{0}; };
  auto link = HelperLink::Start(common, (*known)->List().front());
  std::vector<std::vector<uint8_t>> memory(kSlots, std::vector<uint8_t>(bytes + 64, 1));
  std::vector<StepInfo> infos(kSlots);
  std::vector<ClaimedSlot> slots(kSlots);
  std::vector<Ended> ended(kSlots);
  const auto ask = [&](int step) {
    const int slot = step % kSlots;
    infos[slot].step = static_cast<uint64_t>(step);
    infos[slot].rows = infos[slot].shape_rows = 1;
    slots[slot].tensors = {memory[slot].data()};
    while (!(*link)->Reserve()) usleep(20);
    (*link)->Take(&infos[slot], slots[slot], Completion(&ended[slot]));
  };
  ask(0);
  ended[0].Wait();
  const double cpu = CpuSeconds();
  const int64_t begin_ns = MonotonicNs();
  ask(1);
  for (int step = 1; step <= steps; ++step) {
    if (step < steps) ask(step + 1);
    ended[step % kSlots].Wait();
  }
  const double gib = static_cast<double>(bytes) * steps / (uint64_t{1} << 30);
  const double asker = (CpuSeconds() - cpu) / gib;
  const double rate = gib / (1e-9 * static_cast<double>(MonotonicNs() - begin_ns));
  (*link)->Stop();
  (*link)->Join();
  close(listening);
  rusage used{};
  int end = 0;
  wait4(helper, &end, 0, &used);
  const double of_helper = (used.ru_utime.tv_sec + used.ru_stime.tv_sec +
                            1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec)) /
                           (static_cast<double>(bytes) * (steps + 1) / (uint64_t{1} << 30));
  std::printf("{\"asker_s_per_gib\": %.3f, \"helper_s_per_gib\": %.3f, \"gib_per_s\": %.2f}\n",
              asker, of_helper, rate);
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return penstock::Run(std::strtoull(argv[1], nullptr, 10), std::atoi(argv[2]),
                       argc > 3 ? argv[3] : nullptr);
}
