// The same between processes: hand-over, sleep and wake-up, and kill -9.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "tests/ring/test_ring.h"
#include "tests/support/attach_server.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

constexpr uint64_t kEver = UINT64_MAX;
constexpr WaitTimes kNoLooks = {0, 0, kEver};

// Memory in which children report to the test.
struct Report {
  std::atomic<uint64_t> taken[8];
  std::atomic<uint64_t> wrong;
  std::atomic<uint32_t> killed;
};

// Children are forked before the daemon's threads exist, and connect when it listens.
class Children {
 public:
  Children() {
    char pattern[] = "/tmp/penstock-process-XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    folder_ = pattern;
    REQUIRE(pipe(go_) == 0);
    void* memory =
        mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    report_ = static_cast<Report*>(memory);
  }
  ~Children() {
    for (pid_t pid : pids_) Kill(pid);
    munmap(report_, sizeof(Report));
    close(go_[0]);
    close(go_[1]);
    rmdir(folder_.c_str());
  }

  std::string socket() const { return folder_ + "/socket"; }
  Report& report() { return *report_; }

  // Starts a child that attaches when Go() is called, and then does `work`.
  pid_t Start(const WaitTimes& times, std::function<void(Reader*, Report*)> work) {
    const pid_t pid = fork();
    if (pid != 0) {
      pids_.push_back(pid);
      return pid;
    }
    char byte;
    if (read(go_[0], &byte, 1) != 1) _exit(3);
    Attachment attachment;
    std::unique_ptr<Reader> reader;
    if (!Attach(socket(), "small", "", 10'000'000'000, &attachment).ok()) _exit(4);
    if (!Reader::Open(attachment, &reader, times).ok()) _exit(5);
    work(reader.get(), report_);
    _exit(0);
  }
  void Go() {
    const std::string bytes(pids_.size(), 'g');
    REQUIRE(write(go_[1], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  // Waits for a child that ends by itself.
  int Join(pid_t pid) {
    int state = 0;
    waitpid(pid, &state, 0);
    Forget(pid);
    return state;
  }
  void Kill(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    Forget(pid);
  }

 private:
  void Forget(pid_t pid) {
    for (pid_t& known : pids_) {
      if (known == pid) known = 0;
    }
    std::erase(pids_, 0);
  }

  std::string folder_;
  int go_[2];
  std::vector<pid_t> pids_;
  Report* report_;
};

// Takes everything to the end, and checks it.
void TakeAll(Reader* reader, Report* report, int who) {
  uint64_t expected = reader->position();
  Lease lease;
  Reader::Result result;
  while ((result = reader->Next(kEver, &lease)) == Reader::Result::kBatch) {
    report->wrong += lease.step != expected++ || !IsIntact(lease);
    ++report->taken[who];
    reader->Release(lease);
  }
  report->wrong += result != Reader::Result::kEnd;
}

void ProduceUntil(Writer* writer, uint64_t steps) {
  while (Produce(writer, steps) < steps) writer->WaitForRelease(kEver);
}

void WaitForConsumers(const Writer& writer, size_t count) {
  while (writer.Consumers().size() != count) std::this_thread::yield();
}

TEST_CASE("two processes take every step, in order, without a lost wake-up") {
  Children children;
  const pid_t first =
      children.Start(kNoLooks, [](Reader* reader, Report* report) { TakeAll(reader, report, 0); });
  const pid_t second = children.Start(
      {0, kEver, kEver}, [](Reader* reader, Report* report) { TakeAll(reader, report, 1); });
  auto writer = MakeWriter();
  AttachServer server(writer.get(), "small", children.socket());
  REQUIRE(server.Start());
  children.Go();
  WaitForConsumers(*writer, 2);
  ProduceUntil(writer.get(), 20000);
  writer->Finish(Code::kOk, "");
  CHECK(children.Join(first) == 0);
  CHECK(children.Join(second) == 0);
  CHECK(children.report().taken[0] == 20000);
  CHECK(children.report().taken[1] == 20000);
  CHECK(children.report().wrong == 0);
}

TEST_CASE(
    "fault 38: a process killed while it holds batches stalls neither the writer nor another one") {
  Children children;
  const pid_t holder = children.Start(kNoLooks, [](Reader* reader, Report* report) {
    Lease lease;
    for (int i = 0; i < 2; ++i) {
      reader->Next(kEver, &lease);
      ++report->taken[0];
    }
    while (true) pause();
  });
  const pid_t other =
      children.Start(kNoLooks, [](Reader* reader, Report* report) { TakeAll(reader, report, 1); });
  auto writer = MakeWriter();
  AttachServer server(writer.get(), "small", children.socket());
  REQUIRE(server.Start());
  children.Go();
  WaitForConsumers(*writer, 2);
  std::thread producer([&] {
    ProduceUntil(writer.get(), 5000);
    writer->Finish(Code::kOk, "");
  });
  while (children.report().taken[0] < 2) std::this_thread::yield();
  // The ring is as full as the dead one leaves it, and the writer sleeps.
  children.Kill(holder);
  CHECK(children.Join(other) == 0);
  producer.join();
  CHECK(children.report().taken[1] == 5000);
  CHECK(children.report().wrong == 0);
}

TEST_CASE(
    "fault 38: a lone process killed while the writer sleeps: the next one starts where it "
    "stopped") {
  Children children;
  const pid_t holder = children.Start(kNoLooks, [](Reader* reader, Report* report) {
    Lease lease;
    for (int i = 0; i < 100; ++i) {
      reader->Next(kEver, &lease);
      reader->Release(lease);
    }
    reader->Next(kEver, &lease);
    ++report->taken[0];
    while (true) pause();
  });
  auto writer = MakeWriter();
  AttachServer server(writer.get(), "small", children.socket());
  REQUIRE(server.Start());
  children.Go();
  WaitForConsumers(*writer, 1);
  std::thread producer([&] {
    ProduceUntil(writer.get(), 200);
    writer->Finish(Code::kOk, "");
  });
  while (children.report().taken[0] < 1) std::this_thread::yield();
  children.Kill(holder);
  WaitForConsumers(*writer, 0);
  TestConsumer next(writer.get(), kNoLooks);
  CHECK(next.start() == 100);
  for (uint64_t step = 100; step < 200; ++step) {
    Lease lease;
    REQUIRE(next.reader().Next(kEver, &lease) == Reader::Result::kBatch);
    REQUIRE(lease.step == step);
    REQUIRE(IsIntact(lease));
    next.reader().Release(lease);
  }
  producer.join();
}

TEST_CASE("fault 38: processes killed at random moments leave an honest one undisturbed") {
  for (int round = 0; round < 10; ++round) {
    Children children;
    std::vector<pid_t> victims;
    for (int i = 0; i < 4; ++i) {
      victims.push_back(children.Start({}, [i](Reader* reader, Report* report) {
        Lease lease;
        while (reader->Next(kEver, &lease) == Reader::Result::kBatch) {
          report->wrong += !IsIntact(lease);
          ++report->taken[2 + i];
          reader->Release(lease);
        }
      }));
    }
    const pid_t honest =
        children.Start({}, [](Reader* reader, Report* report) { TakeAll(reader, report, 1); });
    auto writer = MakeWriter();
    AttachServer server(writer.get(), "small", children.socket());
    REQUIRE(server.Start());
    children.Go();
    WaitForConsumers(*writer, 5);
    std::thread producer([&] {
      ProduceUntil(writer.get(), 1000);
      writer->Finish(Code::kOk, "");
    });
    for (int i = 0; i < 4; ++i) {
      while (children.report().taken[2 + i] < static_cast<uint64_t>(50 * (round + i) % 400)) {
        std::this_thread::yield();
      }
      children.Kill(victims[static_cast<size_t>(i)]);
    }
    CHECK(children.Join(honest) == 0);
    producer.join();
    CHECK(children.report().taken[1] == 1000);
    CHECK(children.report().wrong == 0);
  }
}

}  // namespace
}  // namespace penstock::ring
