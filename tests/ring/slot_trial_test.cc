// What a ring learns from how fast its steps come with fewer slots, on a made-up clock; and that
// nobody waits for the slots that it leaves out.
#include "ring/slot_trial.h"

#include <atomic>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "ring/futex.h"
#include "ring/slot_table.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

using StepTime = std::function<double(uint32_t slots)>;  // in us

// A ring whose steps take so long.
struct TriedRing {
  SlotTrial trial;
  uint64_t now_ns = 1'000'000'000;
  std::map<uint32_t, uint64_t> steps;  // by the number of slots that were used

  TriedRing(uint32_t least, uint32_t most) { trial.Begin(least, most); }

  void Run(double seconds, const StepTime& time_us) {
    const uint64_t end_ns = now_ns + static_cast<uint64_t>(1e9 * seconds);
    while (now_ns < end_ns) {
      ++steps[trial.used()];
      now_ns += static_cast<uint64_t>(1e3 * time_us(trial.used()));
      trial.Publish(now_ns);
    }
  }
};

TEST_CASE("a ring that is faster with fewer slots uses fewer, step by step") {
  TriedRing ring(3, 8);
  ring.Run(5, [](uint32_t slots) { return 100.0 + 10 * slots; });
  CHECK(ring.trial.chosen() == 3);
  CHECK(ring.trial.used() == 3);
  // What was tried on the way, and what was not.
  CHECK(ring.steps.contains(6));
  CHECK(ring.steps.contains(4));
  CHECK_FALSE(ring.steps.contains(7));
}

TEST_CASE("a ring whose best number lies in the middle finds it from both sides") {
  TriedRing ring(3, 8);
  const auto time_us = [](uint32_t slots) {
    return slots == 4 ? 100.0 : slots == 6 ? 110 : slots == 3 ? 125 : 130;
  };
  ring.Run(60, time_us);
  CHECK(ring.trial.chosen() == 4);
  // The neighbours go: more is better again.
  ring.Run(60, [](uint32_t slots) { return 200.0 - 10 * slots; });
  CHECK(ring.trial.chosen() == 8);
  ring.Run(60, time_us);
  CHECK(ring.trial.chosen() == 4);
}

TEST_CASE("a ring that is as fast with fewer slots keeps all, and tries little") {
  std::mt19937 dice(1);
  TriedRing ring(3, 4);
  ring.Run(300, [&](uint32_t) { return 150.0 * (0.8 + 0.4 * (dice() % 1000) / 1000); });
  CHECK(ring.trial.chosen() == 4);
  // Both sides of each trial are as long, and trials are rare.
  CHECK(ring.steps[3] > 0);
  CHECK(ring.steps[3] * 100 < ring.steps[4]);
}

TEST_CASE("a little faster is not clearly faster") {
  TriedRing ring(3, 4);
  ring.Run(100, [](uint32_t slots) { return slots == 3 ? 98.0 : 100; });
  CHECK(ring.trial.chosen() == 4);
}

TEST_CASE("slow steps are not tried for long, and a trial that is interrupted says nothing") {
  TriedRing slow(3, 4);
  slow.Run(100, [](uint32_t slots) { return 1000.0 * slots; });
  CHECK(slow.trial.chosen() == 4);
  CHECK(slow.steps[3] == 0);
  TriedRing interrupted(3, 4);
  uint64_t count = 0;
  interrupted.Run(100, [&](uint32_t slots) {
    return ++count % (SlotTrial::kWindows * SlotTrial::kSteps) == 0 ? 1e6 : 50.0 * slots;
  });
  CHECK(interrupted.trial.chosen() == 4);
}

TEST_CASE("a trial that is stopped, or has nothing to choose from, uses all slots") {
  TriedRing ring(3, 8);
  ring.Run(5, [](uint32_t slots) { return 10.0 * slots; });
  REQUIRE(ring.trial.chosen() == 3);
  ring.trial.Stop();
  CHECK_FALSE(ring.trial.is_on());
  ring.Run(20, [](uint32_t slots) { return 10.0 * slots; });
  CHECK(ring.trial.used() == 8);
  TriedRing small(3, 3);
  CHECK_FALSE(small.trial.is_on());
  CHECK(small.trial.used() == 3);
}

TEST_CASE("slots that are left out are there for a lone consumer that keeps batches") {
  SlotTable table(4);
  ControlPage page{};
  const Member member = {&page, 1, 0, kNeverStops};
  const std::vector<Member> one = {member}, two = {member, member};
  const auto claimable = [&](const std::vector<Member>& members) {
    const bool may = table.Sweep(members);
    const int slot = table.Claim();
    CHECK(may == (slot >= 0));
    if (slot >= 0) table.Publish(static_cast<uint32_t>(slot));
    return may;
  };
  table.SetUsed(3);
  CHECK(claimable(one));
  CHECK(claimable(one));
  CHECK(claimable(one));
  CHECK_FALSE(claimable(one));
  // Two are taken, as in a loop; the third has been taken, too.
  page.position = 2;
  CHECK_FALSE(claimable(one));
  page.position = 3;
  CHECK(claimable(one));
  page.position = 4;
  CHECK_FALSE(claimable(one));
  page.released[1] = 2;
  CHECK(claimable(one));
  CHECK_FALSE(claimable(one));
  // With a second consumer all are used.
  page.released[0] = 1;
  page.released[2] = 3;
  page.position = 5;
  CHECK(claimable(two));
  CHECK(claimable(two));
  CHECK_FALSE(claimable(two));
}

TEST_CASE("a position that is forged wins the slots that there are, and no more") {
  SlotTable table(4);
  ControlPage page{};
  const std::vector<Member> members = {{&page, 1, 0, kNeverStops}};
  table.SetUsed(3);
  page.position = UINT64_MAX;
  for (int step = 0; step < 4; ++step) {
    REQUIRE(table.Sweep(members));
    table.Publish(static_cast<uint32_t>(table.Claim()));
  }
  CHECK_FALSE(table.Sweep(members));
  CHECK(table.Claim() == -1);
}

TEST_CASE("who begins to keep batches waits for no slot that was left out") {
  auto writer = MakeWriter(SmallRing(4, 4));
  TestConsumer consumer(writer.get());
  writer->TryFewerSlots(true);
  std::atomic<bool> over{false};
  std::thread producer([&] {
    for (uint64_t step = 0; !over; ++step) {
      int slot;
      while ((slot = writer->TryClaim()) < 0) writer->WaitForRelease(UINT64_MAX);
      FillAndPublish(writer.get(), slot, step);
    }
    writer->Finish(Code::kOk, "");
  });
  std::vector<Lease> held;
  uint64_t next = 0;
  const auto take = [&](size_t keep) {
    Lease lease;
    if (consumer.reader().Next(UINT64_MAX, &lease) != Reader::Result::kBatch) return false;
    held.push_back(lease);
    REQUIRE(lease.step == next++);
    while (held.size() > keep) {
      consumer.reader().Release(held.front());
      held.erase(held.begin());
    }
    return true;
  };
  // As a loop does, until trials have been made.
  const uint64_t until_ns = MonotonicNs() + 4 * SlotTrial::kStartNs;
  while (MonotonicNs() < until_ns) take(1);
  for (int i = 0; i < 1000; ++i) REQUIRE(take(3));
  CHECK(writer->used_slots() == 4);
  over = true;
  while (take(0)) continue;
  producer.join();
}

}  // namespace
}  // namespace penstock::ring
