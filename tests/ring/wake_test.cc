// No lost wake-up in either direction, with the time-outs that would heal one taken away: a lost
// one hangs the test.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "ring/futex.h"
#include "ring/left_wakes.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

constexpr uint64_t kEver = UINT64_MAX;
// A consumer that sleeps at once, always for two batches, and never looks around by itself.
constexpr WaitTimes kForTwo = {0, kEver, kEver};
// One that sleeps at once for the very next batch.
constexpr WaitTimes kForOne = {0, 0, kEver};
constexpr WaitTimes kSpins = {5'000, 1'000, kEver};

// What a random number of turns of an empty loop takes: it shifts the threads against each other.
void Dawdle(std::mt19937* dice) {
  for (uint32_t i = (*dice)() % 400; i > 0; --i) asm volatile("");
}

void ProduceAll(Writer* writer, uint64_t steps, bool dawdle) {
  std::mt19937 dice(1);
  for (uint64_t step = 0; step < steps; ++step) {
    int slot;
    while ((slot = writer->TryClaim()) < 0) writer->WaitForRelease(kEver);
    if (dawdle) Dawdle(&dice);
    FillAndPublish(writer, slot, step);
    writer->PassBy();
  }
  writer->Rest();
  writer->Finish(Code::kOk, "");
}

// Takes everything to the end; returns the number of batches, or -1 if one was wrong.
int64_t ConsumeAll(Reader* reader, uint32_t keep, uint32_t seed) {
  std::mt19937 dice(seed);
  std::vector<Lease> held;
  int64_t batches = 0;
  bool fine = true;
  uint64_t expected = reader->position();
  while (true) {
    Lease lease;
    const Reader::Result result = reader->Next(kEver, &lease);
    if (result != Reader::Result::kBatch) {
      fine &= result == Reader::Result::kEnd;
      break;
    }
    fine &= lease.step == expected++ && IsIntact(lease);
    ++batches;
    held.push_back(lease);
    Dawdle(&dice);
    while (held.size() > keep) {
      const size_t which = dice() % held.size();
      fine &= IsIntact(held[which]);
      reader->Release(held[which]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  for (const Lease& lease : held) reader->Release(lease);
  return fine ? batches : -1;
}

void RunPair(const WaitTimes& times, uint32_t slots, uint32_t keep, bool dawdle, uint64_t steps) {
  auto writer = MakeWriter(SmallRing(slots, std::max(slots, 2u)));
  TestConsumer consumer(writer.get(), times);
  std::thread producer([&] { ProduceAll(writer.get(), steps, dawdle); });
  const int64_t batches = ConsumeAll(&consumer.reader(), keep, 7);
  producer.join();
  CHECK(batches == static_cast<int64_t>(steps));
}

// Nobody looks at the clock here: what a Tick() would do is not done.
TEST_CASE("who skips and never reads, or has left its split group, keeps nobody waiting") {
  for (const bool skips : {true, false}) {
    for (const uint32_t keep : {0u, 1u, 2u}) {
      INFO("skips " << skips << " keep " << keep);
      constexpr int64_t kSteps = 10000;
      auto writer = MakeWriter(SmallRing(3, 9));
      ConsumerSpec spec;
      if (skips) {
        spec.slow = SlowPolicy::kSkip;
      } else {
        spec.mode = GroupMode::kSplit;
        spec.group = "workers";
      }
      TestConsumer stands(writer.get(), kForOne, spec), consumer(writer.get(), kForOne);
      std::thread producer([&] { ProduceAll(writer.get(), kSteps, false); });
      if (!skips) {
        Lease lease;
        while (stands.reader().Next(0, &lease) != Reader::Result::kBatch) writer->Deal();
        stands.reader().Release(lease);
        stands.reader().Leave();
        stands.Detach();
      }
      const int64_t batches = ConsumeAll(&consumer.reader(), keep, 7);
      producer.join();
      CHECK(batches == kSteps);
    }
  }
}

TEST_CASE("writer and one consumer wake each other") {
  SECTION("for one, two slots") { RunPair(kForOne, 2, 0, false, 30000); }
  SECTION("for one, three slots, slow writer") { RunPair(kForOne, 3, 0, true, 30000); }
  SECTION("for two, two slots: the ring is full before two are ready") {
    RunPair(kForTwo, 2, 1, false, 30000);
  }
  SECTION("for two, three slots, two of them held") { RunPair(kForTwo, 3, 2, false, 30000); }
  SECTION("for two, five slots, slow writer") { RunPair(kForTwo, 5, 1, true, 30000); }
  SECTION("with spins") { RunPair(kSpins, 3, 1, true, 30000); }
}

TEST_CASE("a verdict that comes while a consumer looks is no end of the stream") {
  // It never sleeps, so that nearly all of its looks are the ones between which the verdict may
  // come.
  constexpr WaitTimes kLooks = {kEver, 0, kEver};
  const auto writer = MakeWriter();
  std::mt19937 dice(1);
  std::atomic<int> asked{0}, begun{0};
  constexpr int kRounds = 10000;
  std::thread sends([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (asked.load() < round) sched_yield();
      begun.store(round);
      Dawdle(&dice);
      Dawdle(&dice);
      writer->SendAway();
    }
  });
  int ends = 0;
  for (int round = 1; round <= kRounds; ++round) {
    TestConsumer consumer(writer.get(), kLooks);
    asked.store(round);
    while (begun.load() < round) sched_yield();
    Lease lease;
    if (consumer.reader().Next(kEver, &lease) != Reader::Result::kAgain) ++ends;
    consumer.Detach();
  }
  sends.join();
  CHECK(ends == 0);
}

TEST_CASE("a writer with several consumers of different pace") {
  auto writer = MakeWriter();
  std::vector<std::unique_ptr<TestConsumer>> consumers;
  for (int i = 0; i < 4; ++i) {
    consumers.push_back(
        std::make_unique<TestConsumer>(writer.get(), i % 2 == 0 ? kForTwo : kForOne));
  }
  constexpr uint64_t kSteps = 10000;
  int64_t batches[4];
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back(
        [&, i] { batches[i] = ConsumeAll(&consumers[i]->reader(), i % 2, 100 + i); });
  }
  ProduceAll(writer.get(), kSteps, true);
  for (std::thread& thread : threads) thread.join();
  for (int64_t count : batches) CHECK(count == kSteps);
}

TEST_CASE("consumers that come and go") {
  auto writer = MakeWriter();
  constexpr uint64_t kSteps = 10000;
  TestConsumer stays(writer.get(), kForTwo);
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::thread visitors([&] {
    std::mt19937 dice(3);
    while (!over) {
      TestConsumer visitor(writer.get(), kForOne);
      uint64_t expected = visitor.start();
      for (uint32_t i = dice() % 20; i > 0; --i) {
        Lease lease;
        if (visitor.reader().Next(kEver, &lease) != Reader::Result::kBatch) break;
        wrong += lease.step != expected++ || !IsIntact(lease);
        // Some it takes with it into its grave.
        if (dice() % 3 != 0) visitor.reader().Release(lease);
        if (visitor.reader().leases() >= 2) break;
      }
      visitor.Detach();
    }
  });
  int64_t batches = 0;
  std::thread stayer([&] { batches = ConsumeAll(&stays.reader(), 1, 11); });
  ProduceAll(writer.get(), kSteps, false);
  stayer.join();
  over = true;
  visitors.join();
  CHECK(batches == kSteps);
  CHECK(wrong == 0);
}

TEST_CASE("a consumer of a split group that sleeps hears of the end") {
  auto writer = MakeWriter();
  ConsumerSpec spec;
  spec.mode = GroupMode::kSplit;
  TestConsumer consumer(writer.get(), kForOne, spec);
  const uint64_t before = num_futex_calls;
  Lease lease;
  Reader::Result result = Reader::Result::kBatch;
  std::thread training([&] { result = consumer.reader().Next(kEver, &lease); });
  while (num_futex_calls == before) std::this_thread::yield();
  writer->Finish(Code::kOk, "");
  training.join();
  CHECK(result == Reader::Result::kEnd);
}

TEST_CASE("a thread that waits for a slot hears of batches that are published while it sleeps") {
  auto writer = MakeWriter();
  TestConsumer consumer(writer.get());
  // Every slot is still being filled: nobody's release could free one.
  std::vector<int> slots;
  for (int slot; (slot = writer->TryClaim()) >= 0;) slots.push_back(slot);
  writer->WaitForRelease(1'000'000);  // hears of the attaching
  constexpr uint64_t kTooLong = 20'000'000'000;
  std::atomic<bool> woken{false};
  const auto begin = std::chrono::steady_clock::now();
  std::thread waiter([&] {
    writer->WaitForRelease(kTooLong);
    woken = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK_FALSE(woken);
  FillAndPublish(writer.get(), slots[0], 0);
  consumer.TakeAndRelease();
  waiter.join();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::nanoseconds(kTooLong));
}

TEST_CASE(
    "a consumer without a batch sleeps on when the ring is full, and wakes up for its first") {
  auto writer = MakeWriter();
  TestConsumer consumer(writer.get(), kForTwo);
  const uint64_t before = num_futex_calls;
  Lease lease;
  std::thread training([&] { consumer.reader().Next(kEver, &lease); });
  while (num_futex_calls == before) std::this_thread::yield();
  // All slots are being filled: the claim that fails must not wake it.
  std::vector<int> slots;
  for (int slot; (slot = writer->TryClaim()) >= 0;) slots.push_back(slot);
  CHECK(num_futex_calls == before + 1);
  // Nor may it wait for a second batch, for which there is no slot.
  FillAndPublish(writer.get(), slots[0], 0);
  training.join();
  CHECK(num_futex_calls == before + 2);
  CHECK(lease.step == 0);
  consumer.reader().Release(lease);
}

// The calling thread runs on that processor alone, as long as this lives.
class Bound {
 public:
  explicit Bound(int processor) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) std::abort();
  }
  ~Bound() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// The first and the last one that this process may use.
std::pair<int, int> TwoProcessors() {
  cpu_set_t allowed;
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  int first = -1, last = -1;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed)) continue;
    if (first < 0) first = processor;
    last = processor;
  }
  return {first, last};
}

TEST_CASE("a wake-up is left to a worker that passes by where the consumer sleeps") {
  const auto [here, there] = TwoProcessors();
  auto writer = MakeWriter(SmallRing(4, 4));
  TestConsumer consumer(writer.get(), kForTwo);
  const auto pass_by = [&] {
    const Bound bound(there);
    for (int i = 0; i < 3; ++i) writer->PassBy();
  };
  const auto pass_by_later = [&] {
    const uint64_t end_ns = MonotonicNs() + 2 * LeftWakes::kSoonNs;
    while (MonotonicNs() < end_ns) SpinPause();
    writer->PassBy();
  };
  std::function<void()> wake;
  SECTION("who wakes it") { wake = pass_by; }
  SECTION("and somebody else does, later") { wake = pass_by_later; }
  SECTION("and somebody else does who rests") {
    wake = [&] { writer->Rest(); };
  }
  SECTION("and somebody else does who waits for a slot") {
    wake = [&] { writer->WaitForRelease(0); };
  }
  uint64_t step = 0;
  // A worker that is interrupted for longer than a moment is not counted on: then once more.
  for (bool was_left = false; !was_left;) {
    const uint64_t before = num_futex_calls;
    Lease lease;
    std::thread training([&, processor = there] {
      const Bound bound(processor);
      consumer.reader().Next(kEver, &lease);
    });
    while (num_futex_calls == before) std::this_thread::yield();
    FillAndPublish(writer.get(), writer->TryClaim(), step++);
    pass_by();
    const Bound bound(here);
    FillAndPublish(writer.get(), writer->TryClaim(), step++);
    was_left = num_futex_calls == before + 1;
    wake();
    training.join();
    CHECK(num_futex_calls == before + 2);
    CHECK(lease.step + 2 == step);
    consumer.reader().Release(lease);
    consumer.TakeAndRelease();
    // With one processor the worker is there itself.
    if (here == there) break;
  }
}

TEST_CASE("a consumer that says it sleeps where nobody works is woken at once") {
  auto writer = MakeWriter(SmallRing(4, 4));
  TestConsumer consumer(writer.get(), kForTwo);
  const uint64_t before = num_futex_calls;
  Lease lease;
  std::thread training([&] { consumer.reader().Next(kEver, &lease); });
  while (num_futex_calls == before) std::this_thread::yield();
  FillAndPublish(writer.get(), writer->TryClaim(), 0);
  FillAndPublish(writer.get(), writer->TryClaim(), 1);
  training.join();
  CHECK(num_futex_calls == before + 2);
}

TEST_CASE("no wake-up is lost that is left to workers") {
  auto writer = MakeWriter(SmallRing(4, 4));
  TestConsumer consumer(writer.get(), kForTwo);
  std::atomic<bool> over{false};
  std::thread passer([&] {
    std::mt19937 dice(5);
    while (!over) {
      for (uint32_t i = dice() % 100; i > 0; --i) {
        Dawdle(&dice);
        writer->PassBy();
      }
      writer->Rest();
      std::this_thread::yield();
    }
  });
  constexpr uint64_t kSteps = 30000;
  int64_t batches = 0;
  std::thread training([&] { batches = ConsumeAll(&consumer.reader(), 1, 13); });
  ProduceAll(writer.get(), kSteps, true);
  training.join();
  over = true;
  passer.join();
  CHECK(batches == kSteps);
}

TEST_CASE("several threads wait for a slot, and an interrupt wakes them all") {
  auto writer = MakeWriter();
  Produce(writer.get());
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      writer->WaitForRelease(kEver);
      ++woken;
    });
  }
  while (woken < 4) {
    writer->Interrupt();
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(woken == 4);
}

}  // namespace
}  // namespace penstock::ring
