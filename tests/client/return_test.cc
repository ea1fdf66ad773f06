// A loader's way back to a daemon that has gone away, and what a fork leaves to the child, against
// a ring_server that dies and comes back.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/c/loader.h"
#include "client/c/penstock.h"
#include "ring/descriptor.h"
#include "ring/futex.h"
#include "tests/client/counted_loader.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace {

using penstock::AttachTo;
using penstock::LoaderPtr;
using penstock::ServerProcess;
using penstock::ring::Descriptor;

// Takes the next batch and lets go of it.
uint64_t TakeStep(const LoaderPtr& loader) {
  penstock_batch* batch = nullptr;
  const int code = penstock_next(loader.get(), PENSTOCK_FOREVER, &batch);
  INFO(penstock_last_error());
  REQUIRE(code == PENSTOCK_OK);
  const uint64_t step = penstock_batch_step(batch);
  penstock_batch_release(batch);
  return step;
}

penstock_stats StatsOf(const LoaderPtr& loader) {
  penstock_stats stats;
  penstock_get_stats(loader.get(), &stats);
  return stats;
}

// Runs it in a forked child, which a hang does not outlive: whether it returned true there.
bool InChild(const std::function<bool()>& run) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(run() ? 0 : 1);
  }
  int state = 0;
  REQUIRE(waitpid(child, &state, 0) == child);
  return state == 0;
}

// Connections to `path` succeed from now on, and nobody answers them.
Descriptor SilentDaemon(const std::string& path) {
  unlink(path.c_str());
  Descriptor listens(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(bind(listens.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(listens.get(), 64) == 0);
  return listens;
}

bool IsRefused(int code) {
  return code == PENSTOCK_FAILED_PRECONDITION &&
         std::string(penstock_last_error()).find("attach again in the child") != std::string::npos;
}

TEST_CASE("fault 40: a forked child asks for no number that its parent guards") {
  ServerProcess server(RING_SERVER);
  LoaderPtr loader = AttachTo(server);
  // As of a thread that the child does not have.
  const std::lock_guard<std::mutex> lock(loader->mutex);
  CHECK(InChild([&] { return penstock_skipped(loader.get()) == 0; }));
}

TEST_CASE("fault 40: a forked child does not wait for the thread that its parent has in a call") {
  ServerProcess server(RING_SERVER, {"--hold-at", "1"});
  LoaderPtr loader = AttachTo(server, 60);
  CHECK(TakeStep(loader) == 0);
  std::atomic<uint64_t> taken{0};
  std::thread waits([&] { taken = TakeStep(loader); });
  while (StatsOf(loader).sleeps == 0) std::this_thread::yield();
  CHECK(InChild([&] {
    penstock_batch* batch = nullptr;
    const bool refused = IsRefused(penstock_next(loader.get(), 0, &batch)) && batch == nullptr &&
                         IsRefused(penstock_seek(loader.get(), "cursor-0", 8)) &&
                         penstock_ready(loader.get()) == 0;
    penstock_detach(loader.get());
    return refused;
  }));
  server.Go();
  waits.join();
  CHECK(taken == 1);
}

TEST_CASE("fault 40: a forked child does not take its parent's place") {
  ServerProcess server(RING_SERVER, {"--steps", "50"});
  LoaderPtr loader = AttachTo(server, 60, "trainer");
  CHECK(TakeStep(loader) == 0);
  CHECK(InChild([&] {
    const bool refused =
        IsRefused(penstock_seek(loader.get(), "cursor-0", 8)) && penstock_ready(loader.get()) == 0;
    penstock_detach(loader.get());
    return refused;
  }));
  for (uint64_t step = 1; step < 50; ++step) REQUIRE(TakeStep(loader) == step);
}

TEST_CASE("fault 40: a forked child does not look for its parent's daemon") {
  ServerProcess server(RING_SERVER, {"--hold-at", "1"});
  LoaderPtr loader = AttachTo(server, 60);
  CHECK(TakeStep(loader) == 0);
  server.Kill();
  penstock_batch* batch = nullptr;
  // From here on it looks for a daemon.
  CHECK(penstock_next(loader.get(), 200'000'000, &batch) == PENSTOCK_TIMEOUT);
  CHECK(InChild([&] { return IsRefused(penstock_next(loader.get(), 0, &batch)); }));
  server.StartAgain();
  server.Go();
  CHECK(TakeStep(loader) == 1);
}

TEST_CASE("a process may fork while its loader comes back") {
  ServerProcess server(RING_SERVER, {"--hold-at", "1"});
  LoaderPtr loader = AttachTo(server, 60);
  CHECK(TakeStep(loader) == 0);
  // The daemon that comes back answers late, so that forks meet the thread that waits for it.
  for (uint32_t round = 1; round <= 12; ++round) {
    server.Kill();
    server.StartAgain();
    server.Signal(SIGSTOP);
    const uint64_t goes_on_ns = penstock::ring::MonotonicNs() + 60'000'000;
    bool goes_on = false;
    while (StatsOf(loader).reconnects < round) {
      REQUIRE(InChild([] { return true; }));
      if (goes_on || penstock::ring::MonotonicNs() < goes_on_ns) continue;
      goes_on = true;
      server.Signal(SIGCONT);
    }
    // It may have answered before it stood still.
    server.Signal(SIGCONT);
  }
  server.Go();
  CHECK(TakeStep(loader) == 1);
}

TEST_CASE("the time in which a new ring is read is none in which a daemon is looked for") {
  ServerProcess server(RING_SERVER, {"--hold-at", "1"});
  // More than a busy machine takes to start a daemon again.
  constexpr double kSeconds = 3;
  LoaderPtr loader = AttachTo(server, kSeconds);
  CHECK(TakeStep(loader) == 0);
  std::string found;
  std::atomic<bool> has_ended{false};
  std::thread waits([&] {
    penstock_batch* batch = nullptr;
    const int code = penstock_next(loader.get(), PENSTOCK_FOREVER, &batch);
    found = code == PENSTOCK_OK ? "step " + std::to_string(penstock_batch_step(batch))
                                : penstock_last_error();
    penstock_batch_release(batch);
    has_ended.store(true);
  });
  const auto come_back = [&](uint32_t reconnects) {
    server.Kill();
    server.StartAgain();
    // One that has given up comes back no more.
    while (StatsOf(loader).reconnects < reconnects && !has_ended.load()) std::this_thread::yield();
  };
  come_back(1);
  // The daemon is long in making its first batch, and dies over it.
  const uint64_t end_ns = penstock::ring::MonotonicNs() + static_cast<uint64_t>(1.2e9 * kSeconds);
  while (penstock::ring::MonotonicNs() < end_ns) std::this_thread::yield();
  server.Kill();
  server.StartAgain();
  server.Go();
  waits.join();
  CHECK(found == "step 1");
}

TEST_CASE("fault 48: an error says for how long a daemon was looked for, and what it did") {
  ServerProcess server(RING_SERVER, {"--hold-at", "1"});
  LoaderPtr loader = AttachTo(server, 0.25);
  CHECK(TakeStep(loader) == 0);
  server.Kill();
  penstock_batch* batch = nullptr;
  SECTION("there is none") {
    CHECK(penstock_next(loader.get(), PENSTOCK_FOREVER, &batch) == PENSTOCK_UNAVAILABLE);
    CHECK_THAT(penstock_last_error(), Catch::Contains("for 0.25 seconds no attempt to come back "
                                                      "succeeded: no penstockd at " +
                                                      server.socket()));
  }
  SECTION("it stands still") {
    // Never one that answers first: a daemon that is stopped later might.
    const Descriptor silent = SilentDaemon(server.socket());
    CHECK(penstock_next(loader.get(), PENSTOCK_FOREVER, &batch) == PENSTOCK_UNAVAILABLE);
    CHECK_THAT(penstock_last_error(),
               Catch::Contains("for 0.25 seconds no attempt to come back succeeded: penstockd at " +
                               server.socket() + " does not answer"));
  }
  CHECK(penstock_next(loader.get(), PENSTOCK_FOREVER, &batch) == PENSTOCK_UNAVAILABLE);
}

}  // namespace
