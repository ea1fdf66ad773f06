// A consumer that writes anything into its control page: it may lose its own place, and never
// changes what another one sees, nor stops the daemon.
#include <sys/mman.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "ring/slot_table.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

// The control page of an attached consumer, mapped as a hostile process would.
class HostilePage {
 public:
  explicit HostilePage(Writer* writer) : writer_(writer) {
    REQUIRE(writer->Attach("default", 1, &handle_).ok());
    void* memory = mmap(nullptr, sizeof(ControlPage), PROT_READ | PROT_WRITE, MAP_SHARED,
                        handle_.control_fd, 0);
    REQUIRE(memory != MAP_FAILED);
    words_ = static_cast<std::atomic<uint64_t>*>(memory);
  }
  ~HostilePage() {
    munmap(words_, sizeof(ControlPage));
    writer_->Detach(handle_.id);
  }

  // One random word to a random place; values that mean something are likely.
  void Scribble(std::mt19937_64* dice, uint64_t published) {
    const uint64_t values[] = {(*dice)(),
                               0,
                               1,
                               UINT64_MAX,
                               published,
                               published + 1,
                               published + 2,
                               published - (*dice)() % 12,
                               (*dice)() % 64};
    words_[(*dice)() % (sizeof(ControlPage) / 8)].store(values[(*dice)() % 9]);
  }

 private:
  Writer* writer_;
  ConsumerHandle handle_;
  std::atomic<uint64_t>* words_ = nullptr;
};

TEST_CASE("fault 43: random control pages never change what another consumer sees") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    auto writer = MakeWriter();
    TestConsumer honest(writer.get());
    HostilePage hostile(writer.get()), second(writer.get());
    std::mt19937_64 dice(seed);
    std::vector<Lease> held;
    uint64_t expected = 0;
    for (int round = 0; round < 20000; ++round) {
      hostile.Scribble(&dice, writer->published());
      second.Scribble(&dice, writer->published());
      Produce(writer.get());
      Lease lease;
      if (dice() % 2 == 0 && honest.reader().Ready()) {
        REQUIRE(honest.reader().Next(0, &lease) == Reader::Result::kBatch);
        REQUIRE(lease.step == expected++);
        held.push_back(lease);
      }
      if (!held.empty() && (held.size() >= 2 || dice() % 2 == 0)) {
        const size_t which = dice() % held.size();
        REQUIRE(IsIntact(held[which]));
        honest.reader().Release(held[which]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      }
      for (const Lease& lease_held : held) REQUIRE(IsIntact(lease_held));
      writer->Consumers();
    }
  }
}

TEST_CASE("fault 43: when the hostile ones have gone, the honest one gets every step") {
  auto writer = MakeWriter();
  TestConsumer honest(writer.get());
  std::mt19937_64 dice(5);
  for (int round = 0; round < 50; ++round) {
    HostilePage hostile(writer.get());
    for (int i = 0; i < 500; ++i) hostile.Scribble(&dice, writer->published());
  }
  for (uint64_t step = 0; step < 100; ++step) {
    Produce(writer.get());
    const Lease lease = honest.Take();
    REQUIRE(lease.step == step);
    REQUIRE(IsIntact(lease));
    honest.reader().Release(lease);
  }
}

TEST_CASE("fault 43: a page that changes while the daemon looks") {
  auto writer = MakeWriter();
  TestConsumer honest(writer.get());
  HostilePage hostile(writer.get());
  std::atomic<bool> stop{false};
  std::thread scribbler([&] {
    std::mt19937_64 dice(9);
    while (!stop) hostile.Scribble(&dice, writer->published());
  });
  uint64_t expected = 0;
  int wrong = 0;
  for (int round = 0; round < 30000; ++round) {
    Produce(writer.get());
    writer->WaitForRelease(0);
    Lease lease;
    if (!honest.reader().Ready()) continue;
    if (honest.reader().Next(0, &lease) != Reader::Result::kBatch) break;
    wrong += lease.step != expected++ || !IsIntact(lease);
    honest.reader().Release(lease);
  }
  stop = true;
  scribbler.join();
  CHECK(wrong == 0);
}

TEST_CASE("fault 43: only the step that the slot holds, plus one, releases it") {
  ControlPage page = {};
  const Member member = {&page, 0, 0, kNeverStops};
  SlotTable table(1);
  REQUIRE(table.Claim() == 0);
  table.Publish(0);
  for (const uint64_t word :
       {uint64_t{0}, uint64_t{2}, uint64_t{3}, UINT64_MAX, uint64_t{1} << 32}) {
    page.released[0] = word;
    CHECK_FALSE(table.Sweep({&member, 1}));
  }
  page.released[1] = 1;
  CHECK_FALSE(table.Sweep({&member, 1}));
  page.released[0] = 1;
  CHECK(table.Sweep({&member, 1}));
}

}  // namespace
}  // namespace penstock::ring
