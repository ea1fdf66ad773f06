// A step that is held for somebody who looks at it, and how often consumers are found waiting.

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

TEST_CASE("each look counts, and those that find a consumer asleep with nothing to take") {
  const auto writer = MakeWriter();
  TestConsumer consumer(writer.get());
  writer->Tick(1'000'000, 10'000'000'000);
  writer->Tick(2'000'000, 10'000'000'000);
  const auto consumers = writer->Consumers();
  REQUIRE(consumers.size() == 1);
  CHECK(consumers[0].looks == 2);
  CHECK(consumers[0].waiting_looks == 0);
}

}  // namespace
}  // namespace penstock::ring
