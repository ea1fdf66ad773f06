// A step that is held for somebody who looks at it, and how often consumers are found waiting.

#include <thread>

#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

bool Holds(Writer* writer, const HeldStep& held) {
  const auto* words = reinterpret_cast<const uint64_t*>(writer->tensor(held.slot, 0));
  for (int i = 0; i < kWords; ++i) {
    if (words[i] != WordOf(held.step, i)) return false;
  }
  return true;
}

TEST_CASE("the newest step stays while it is held, and the others go on") {
  const auto writer = MakeWriter();
  CHECK_FALSE(writer->HoldNewest().has_value());
  TestConsumer consumer(writer.get());
  Produce(writer.get(), 2);
  // Also one that everybody has let go of.
  consumer.TakeAndRelease();
  consumer.TakeAndRelease();
  const auto held = writer->HoldNewest();
  REQUIRE(held.has_value());
  CHECK(held->step == 1);
  CHECK(held->rows == kWords / 2);
  // One at a time.
  CHECK_FALSE(writer->HoldNewest().has_value());
  for (int i = 0; i < 100; ++i) {
    Produce(writer.get());
    const Lease lease = consumer.Take();
    REQUIRE(IsIntact(lease));
    REQUIRE(Holds(writer.get(), *held));
    consumer.reader().Release(lease);
  }
  writer->LetGo();
  // Its slot is used again.
  for (int i = 0; i < 10; ++i) {
    Produce(writer.get());
    consumer.TakeAndRelease();
  }
  CHECK_FALSE(Holds(writer.get(), *held));
}

TEST_CASE("each look counts") {
  const auto writer = MakeWriter();
  TestConsumer consumer(writer.get());
  writer->Tick(1'000'000, 10'000'000'000);
  writer->Tick(2'000'000, 10'000'000'000);
  const auto consumers = writer->Consumers();
  REQUIRE(consumers.size() == 1);
  CHECK(consumers[0].looks == 2);
  CHECK(consumers[0].waiting_looks == 0);
}

TEST_CASE(
    "a consumer that sleeps until two batches are there waits, with one of them as with none") {
  constexpr uint64_t kEver = 60'000'000'000;
  const auto writer = MakeWriter();
  TestConsumer consumer(writer.get(), {.spin_ns = 0, .patience_ns = kEver, .look_ns = kEver});
  Lease lease;
  std::thread training([&] { consumer.reader().Next(kEver, &lease); });
  uint64_t now_ns = 0;
  const auto waiting_looks = [&] {
    writer->Tick(++now_ns, 10'000'000'000);
    return writer->Consumers().at(0).waiting_looks;
  };
  uint64_t before = 0;
  while ((before = waiting_looks()) == 0) std::this_thread::yield();
  Produce(writer.get(), 1);
  CHECK(waiting_looks() == before + 1);
  Produce(writer.get(), 2);
  training.join();
  CHECK(lease.step == 0);
  CHECK(waiting_looks() == before + 1);
}

}  // namespace
}  // namespace penstock::ring
