// Helpers on this machine's loopback, good ones and others, for tests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "penstock/v1/server.pb.h"
#include "ring/descriptor.h"
#include "server/helpers/helper_server.h"
#include "server/helpers/helpers.h"
#include "server/helpers/wire.h"
#include "tests/support/catch.h"

namespace penstock::test {

struct Listening {
  ring::Descriptor socket;
  int port = 0;
};

inline Listening Listen() {
  Listening listening;
  listening.socket = ring::Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  REQUIRE(bind(listening.socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(listening.socket.get(), 16) == 0);
  getsockname(listening.socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  listening.port = ntohs(address.sin_port);
  return listening;
}

// A good one, over these files.
struct GoodHelper {
  explicit GoodHelper(FileSystem& files = LocalFileSystem(), int workers = 2,
                      std::shared_ptr<MemoryAccount> account = nullptr, int most_streams = 64) {
    Listening listening = Listen();
    port = listening.port;
    ServedStream::Means means;
    means.files = &files;
    means.workers = workers;
    means.worker_nice = 0;
    if (account != nullptr) {
      means.account = [account](const v1::PipelineSpec&) { return account; };
    }
    auto started = HelperServer::Start(std::move(listening.socket), std::move(means), most_streams);
    REQUIRE(started.ok());
    server = *std::move(started);
  }
  int port = 0;
  std::unique_ptr<HelperServer> server;
};

// Takes connections, and does with each what `serve` does.
class ListeningThread {
 public:
  using Serve = std::function<void(ring::Descriptor socket, const std::atomic<bool>& stop)>;
  explicit ListeningThread(Serve serve) : listening_(Listen()), serve_(std::move(serve)) {
    thread_ = std::thread([this] { Run(); });
  }
  ~ListeningThread() {
    stop_.store(true);
    thread_.join();
    for (std::thread& one : served_) one.join();
  }
  int port() const { return listening_.port; }

 private:
  void Run() {
    while (!stop_.load()) {
      pollfd waited{listening_.socket.get(), POLLIN, 0};
      if (poll(&waited, 1, 20) <= 0) continue;
      auto socket = std::make_shared<ring::Descriptor>(
          accept4(listening_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      served_.emplace_back([this, socket] { serve_(std::move(*socket), stop_); });
    }
  }

  const Listening listening_;
  const Serve serve_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> served_;
  std::thread thread_;
};

// One that speaks as a helper does, but says what `answer` says; which is called for each step that
// is asked for.
class BadHelper {
 public:
  using Answer = std::function<absl::Status(Wire& wire, uint64_t step)>;
  explicit BadHelper(Answer answer, bool shows_life = true)
      : listening_([answer = std::move(answer), shows_life](ring::Descriptor socket,
                                                            const std::atomic<bool>& stop) {
          Wire wire(std::move(socket), nullptr, stop, -1);
          std::string meta;
          const Wire::Patience patience{10'000, 0};
          if (!wire.ReadFrame(&meta, kMaxMetaBytes, patience).ok()) return;
          absl::Status status = wire.WriteFrame({FrameKind::kReady}, "", patience);
          while (status.ok() && !stop.load()) {
            if (shows_life) status = wire.WriteFrame({FrameKind::kAlive}, "", patience);
            if (!status.ok() || wire.Wait(20) != Wire::Woken::kByBytes) continue;
            const auto frame = wire.ReadFrame(&meta, 0, patience);
            status = frame.status();
            if (status.ok() && frame->kind == FrameKind::kWant) status = answer(wire, frame->step);
          }
        }) {}
  int port() const { return listening_.port(); }

 private:
  ListeningThread listening_;
};

inline std::shared_ptr<Helpers> HelpersAt(const std::vector<int>& ports, int steps = 2) {
  v1::HelperOptions options;
  for (const int port : ports) options.add_address(absl::StrCat("127.0.0.1:", port));
  options.set_steps_at_a_time(steps);
  REQUIRE(CompleteHelpers(&options).ok());
  auto made = Helpers::Create(options);
  REQUIRE(made.ok());
  return *std::move(made);
}

// The same helpers, whose steps are never taken back: what is lent to them is theirs, however quick
// the workers are.
class PatientHelpers final : public StepLenders {
 public:
  explicit PatientHelpers(std::shared_ptr<StepLenders> helpers) : helpers_(std::move(helpers)) {}
  std::unique_ptr<StepLender> Make(std::shared_ptr<const Plan> plan,
                                   const LentStream& stream) override {
    auto lender = helpers_->Make(std::move(plan), stream);
    if (lender == nullptr) return nullptr;
    return std::make_unique<Patient>(std::move(lender));
  }

 private:
  class Patient final : public StepLender {
   public:
    explicit Patient(std::unique_ptr<StepLender> lender) : lender_(std::move(lender)) {}
    bool HasRoom() const override { return lender_->HasRoom(); }
    std::shared_ptr<Place> Reserve() override { return lender_->Reserve(); }
    void GiveUp(Place& place) override { lender_->GiveUp(place); }
    void Lend(Place& place, StepInfo* info, const ClaimedSlot& slot, Completion done) override {
      lender_->Lend(place, info, slot, std::move(done));
    }
    void TakeBack(uint64_t) override {}
    void Passed(uint64_t step, const std::string& cursor, uint64_t own_ns) override {
      lender_->Passed(step, cursor, own_ns);
    }
    std::vector<HelperStats> Helpers() const override { return lender_->Helpers(); }

   private:
    const std::unique_ptr<StepLender> lender_;
  };

  const std::shared_ptr<StepLenders> helpers_;
};

}  // namespace penstock::test
