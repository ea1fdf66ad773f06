// The rules of the ring, one after the other, with writer and consumers in one thread.
#include "ring/writer.h"

#include <memory>
#include <string>
#include <vector>

#include "ring/recent_cursors.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

TEST_CASE("production stops at ring depth, and the first consumer gets step 0") {
  auto writer = MakeWriter();
  CHECK(Produce(writer.get()) == 3);
  CHECK(writer->TryClaim() == -1);
  TestConsumer consumer(writer.get());
  CHECK(consumer.start() == 0);
  for (uint64_t step = 0; step < 3; ++step) {
    const Lease lease = consumer.Take();
    CHECK(lease.step == step);
    CHECK(lease.rows == kWords / 2);
    CHECK(IsIntact(lease));
    consumer.reader().Release(lease);
  }
  CHECK(Produce(writer.get()) == 6);
}

TEST_CASE("tensors are aligned, and 64 bytes behind each belong to nobody") {
  auto writer = MakeWriter();
  const int slot = writer->TryClaim();
  auto* words = writer->tensor(slot, 0);
  auto* tag = writer->tensor(slot, 1);
  CHECK(reinterpret_cast<uintptr_t>(words) % 4096 == 0);
  CHECK(reinterpret_cast<uintptr_t>(tag) % 64 == 0);
  CHECK(tag - words >= kWords * 8 + 64);
  CHECK(writer->tensor(slot + 1, 0) - tag >= 4 + 64);
}

TEST_CASE("any free slot takes the next step: an old batch held for ever blocks nobody") {
  auto writer = MakeWriter();
  TestConsumer consumer(writer.get());
  Produce(writer.get());
  const Lease held = consumer.Take();
  for (uint64_t step = 1; step < 1000; ++step) {
    Produce(writer.get());
    const Lease lease = consumer.Take();
    REQUIRE(lease.step == step);
    REQUIRE(IsIntact(lease));
    consumer.reader().Release(lease);
  }
  CHECK(IsIntact(held));
  CHECK(writer->Consumers()[0].leases == 1);
  consumer.reader().Release(held);
  CHECK(writer->Consumers()[0].leases == 0);
}

TEST_CASE("a slot waits for the slowest consumer") {
  auto writer = MakeWriter();
  TestConsumer fast(writer.get()), slow(writer.get());
  // Two consumers: 2 * 2 + 1 slots.
  CHECK(writer->slots() == 5);
  Produce(writer.get());
  for (int i = 0; i < 5; ++i) fast.TakeAndRelease();
  CHECK(writer->TryClaim() == -1);
  const Lease first = slow.Take();
  CHECK(writer->TryClaim() == -1);
  slow.reader().Release(first);
  CHECK(Produce(writer.get()) == 6);
}

TEST_CASE("a ring becomes deeper and shallower while it is read") {
  auto writer = MakeWriter();
  TestConsumer consumer(writer.get());
  CHECK(Produce(writer.get()) == 3);
  REQUIRE(writer->SetSlots(6).ok());
  CHECK(writer->slots() == 6);
  CHECK(consumer.reader().lease_share() == 5);
  CHECK(Produce(writer.get()) == 6);
  // What is in the ring stays there; nothing is claimed before less is.
  REQUIRE(writer->SetSlots(2).ok());
  CHECK(writer->slots() == 2);
  CHECK(consumer.reader().lease_share() == 1);
  for (uint64_t step = 0; step < 5; ++step) {
    CHECK(writer->TryClaim() == -1);
    const Lease lease = consumer.Take();
    CHECK(lease.step == step);
    CHECK(IsIntact(lease));
    consumer.reader().Release(lease);
  }
  CHECK(Produce(writer.get()) == 7);
  // One for each consumer and one more, whatever is asked for.
  TestConsumer second(writer.get()), third(writer.get());
  CHECK(writer->slots() == 4);
  second.Detach();
  third.Detach();
  CHECK(writer->slots() == 2);
}

TEST_CASE("a consumer is sent away and keeps what it holds") {
  auto writer = MakeWriter();
  TestConsumer consumer(writer.get()), other(writer.get());
  Produce(writer.get());
  const Lease held = consumer.Take();
  CHECK_FALSE(writer->Dismiss(77, "away"));
  const uint32_t id = writer->Consumers()[0].id;
  CHECK(writer->Dismiss(id, "away"));
  CHECK_FALSE(writer->Dismiss(id, "away"));
  CHECK(writer->Consumers()[0].detached);
  for (int i = 0; i < 20; ++i) {
    other.TakeAndRelease();
    Produce(writer.get());
  }
  CHECK(IsIntact(held));
}

TEST_CASE("leases are shared so that nobody can wait for himself") {
  auto writer = MakeWriter();
  TestConsumer one(writer.get());
  CHECK(one.reader().lease_share() == 2);
  TestConsumer two(writer.get());
  CHECK(writer->slots() == 5);
  CHECK(one.reader().lease_share() == 2);
  std::vector<std::unique_ptr<TestConsumer>> more;
  for (int i = 0; i < 2; ++i) more.push_back(std::make_unique<TestConsumer>(writer.get()));
  CHECK(writer->slots() == 9);
  CHECK(one.reader().lease_share() == 2);
  for (int i = 0; i < 4; ++i) more.push_back(std::make_unique<TestConsumer>(writer.get()));
  CHECK(writer->slots() == 9);
  CHECK(one.reader().lease_share() == 1);
  for (auto& consumer : more) consumer->Detach();
  CHECK(one.reader().lease_share() == 4);
}

TEST_CASE("a newcomer starts at the oldest step that somebody still needs") {
  auto writer = MakeWriter(SmallRing(5, 9));
  TestConsumer one(writer.get());
  Produce(writer.get(), 4);
  one.TakeAndRelease();
  one.TakeAndRelease();
  TestConsumer two(writer.get());
  CHECK(two.start() == 2);
  CHECK(two.Take().step == 2);

  SECTION("and not at an old one that is held: it would miss the steps between") {
    const Lease held = one.Take();  // step 2, which two holds as well
    Produce(writer.get(), 5);
    one.TakeAndRelease();
    one.TakeAndRelease();
    two.TakeAndRelease();
    two.TakeAndRelease();
    TestConsumer three(writer.get());
    CHECK(three.start() == 5);
    CHECK(IsIntact(held));
  }
}

TEST_CASE("the position stays when the last consumer leaves") {
  auto writer = MakeWriter();
  uint64_t expected = 0;
  {
    TestConsumer consumer(writer.get());
    for (int i = 0; i < 10; ++i) {
      Produce(writer.get());
      consumer.TakeAndRelease();
    }
    expected = 10;
    SECTION("with everything released") {}
    SECTION("with leases, which come back") { consumer.Take(); }
    SECTION("with a lease let go of, out of order") {
      Produce(writer.get());
      const Lease held = consumer.Take();
      consumer.TakeAndRelease();
      (void)held;
      // Step 11 has been served, and a stream has no gaps.
      expected = 12;
    }
    consumer.Detach();
  }
  // What was served, or stands in front of that, takes no slot.
  CHECK(Produce(writer.get()) == expected + 3);
  CHECK(writer->TryClaim() == -1);
  TestConsumer next(writer.get());
  CHECK(next.start() == expected);
  CHECK(IsIntact(next.Take()));
}

TEST_CASE("fault 38: a consumer that dies with leases gives them back") {
  auto writer = MakeWriter();
  TestConsumer lives(writer.get());
  {
    TestConsumer dies(writer.get());
    Produce(writer.get());
    for (int i = 0; i < 5; ++i) {
      dies.Take();
      lives.TakeAndRelease();
    }
    CHECK(writer->TryClaim() == -1);
    dies.Detach();
  }
  CHECK(Produce(writer.get()) == 10);
  CHECK(writer->Consumers().size() == 1);
}

TEST_CASE("a consumer that has left holds its leases and needs no further step") {
  auto writer = MakeWriter();
  TestConsumer stays(writer.get()), leaves(writer.get());
  Produce(writer.get());
  const Lease held = leaves.Take();
  leaves.reader().Leave();
  Lease none;
  CHECK(leaves.reader().Next(0, &none) == Reader::Result::kFailed);
  for (uint64_t step = 0; step < 50; ++step) {
    Produce(writer.get());
    const Lease lease = stays.Take();
    REQUIRE(lease.step == step);
    stays.reader().Release(lease);
  }
  CHECK(IsIntact(held));
  leaves.reader().Release(held);
}

TEST_CASE("a lone consumer that has left does not use up the stream") {
  auto writer = MakeWriter();
  TestConsumer leaves(writer.get());
  Produce(writer.get());
  leaves.TakeAndRelease();
  leaves.reader().Leave();
  // Step 0 is done with; one more fits, and then the ring waits for a newcomer.
  CHECK(Produce(writer.get()) == 4);
  leaves.Detach();
  CHECK(writer->TryClaim() == -1);
  TestConsumer next(writer.get());
  CHECK(next.start() == 1);
}

TEST_CASE("the end comes after the last step, for late consumers too") {
  auto writer = MakeWriter();
  TestConsumer consumer(writer.get());
  Produce(writer.get(), 2);
  writer->Finish(Code::kOk, "");
  consumer.TakeAndRelease();
  consumer.TakeAndRelease();
  Lease lease;
  CHECK(consumer.reader().Next(UINT64_MAX, &lease) == Reader::Result::kEnd);
  CHECK(consumer.reader().Next(0, &lease) == Reader::Result::kEnd);
  TestConsumer late(writer.get());
  CHECK(late.reader().Next(UINT64_MAX, &lease) == Reader::Result::kEnd);
}

TEST_CASE("a failure is raised by every call") {
  auto writer = MakeWriter();
  TestConsumer consumer(writer.get());
  writer->Finish(Code::kDataLoss, std::string(2000, 'x'));
  // It has ended: how is not changed any more.
  writer->Finish(Code::kOk, "");
  Lease lease;
  for (int i = 0; i < 2; ++i) {
    CHECK(consumer.reader().Next(UINT64_MAX, &lease) == Reader::Result::kFailed);
    CHECK(consumer.reader().error().code == Code::kDataLoss);
    CHECK(consumer.reader().error().message == std::string(kMaxMessageBytes, 'x'));
  }
}

TEST_CASE("a daemon that hangs up is UNAVAILABLE, and its last words come first") {
  auto writer = MakeWriter();
  TestConsumer consumer(writer.get());
  Produce(writer.get(), 1);
  consumer.HangUp();
  consumer.TakeAndRelease();
  Lease lease;
  SECTION("nothing was said") {
    CHECK(consumer.reader().Next(UINT64_MAX, &lease) == Reader::Result::kAgain);
    CHECK(consumer.reader().error().code == Code::kUnavailable);
  }
  SECTION("the stream had ended") {
    writer->Finish(Code::kOk, "");
    CHECK(consumer.reader().Next(UINT64_MAX, &lease) == Reader::Result::kEnd);
  }
}

TEST_CASE("every place is taken") {
  auto writer = MakeWriter(SmallRing(1, 64));
  std::vector<std::unique_ptr<TestConsumer>> consumers;
  for (uint32_t i = 0; i < kMaxConsumers; ++i) {
    consumers.push_back(std::make_unique<TestConsumer>(writer.get()));
  }
  CHECK(writer->slots() == 64);
  ConsumerHandle handle;
  CHECK(writer->Attach("default", 1, &handle).code == Code::kResourceExhausted);
  consumers[17]->Detach();
  consumers[17].reset();
  CHECK(writer->Attach("default", 1, &handle).ok());
  CHECK(handle.id == kMaxConsumers + 1);
}

TEST_CASE("the cursors of the last steps are known, and of no others") {
  RecentCursors cursors(5, "c5");
  CHECK(cursors.Before(5) == "c5");
  CHECK(cursors.Before(4).empty());
  const uint64_t last = 5 + 3 * uint64_t{kMaxSlots};
  for (uint64_t step = 5; step < last; ++step) cursors.Add(step, "c" + std::to_string(step + 1));
  for (uint64_t step = last - kMaxSlots; step <= last; ++step)
    CHECK(cursors.Before(step) == "c" + std::to_string(step));
  CHECK(cursors.Before(5).empty());
  CHECK(cursors.Before(last + 1).empty());
}

TEST_CASE("statistics name each consumer") {
  auto writer = MakeWriter();
  ConsumerHandle handle;
  REQUIRE(writer->Attach("eval", 4711, &handle).ok());
  TestConsumer consumer(writer.get());
  Produce(writer.get());
  consumer.Take();
  consumer.TakeAndRelease();
  const std::vector<ConsumerStats> stats = writer->Consumers();
  REQUIRE(stats.size() == 2);
  CHECK(stats[0].group == "eval");
  CHECK(stats[0].pid == 4711);
  CHECK(stats[0].position == 0);
  CHECK(stats[1].id == consumer.id());
  CHECK(stats[1].position == 2);
  CHECK(stats[1].leases == 1);
}

TEST_CASE("an interrupt before the wait is not lost, and needs no consumer") {
  auto writer = MakeWriter();
  Produce(writer.get());
  writer->Interrupt();
  writer->WaitForRelease(UINT64_MAX);
  // A free slot is not waited for.
  TestConsumer consumer(writer.get());
  consumer.TakeAndRelease();
  writer->WaitForRelease(UINT64_MAX);
  CHECK(Produce(writer.get()) == 4);
}

TEST_CASE("a ring that cannot be is refused, and says why") {
  std::unique_ptr<Writer> writer;
  SegmentOptions options = SmallRing();
  std::string expected;
  Code code = Code::kInvalidArgument;
  SECTION("larger than memory") {
    options.tensors[0].shape = {int64_t{1} << 30, int64_t{1} << 10};
    expected = "a ring of 3 slots of 8192.0 GiB does not fit in memory";
    code = Code::kResourceExhausted;
  }
  SECTION("larger than 63 bits") {
    options.tensors[0].shape = {int64_t{1} << 31, int64_t{1} << 31, 4};
    expected = "does not fit in 2^62 bytes (tensor \"words\")";
  }
  SECTION("a size that overflows to zero") {
    options.tensors[0].shape = {int64_t{1} << 32, int64_t{1} << 32};
    expected = "does not fit in 2^62 bytes";
  }
  SECTION("an axis of unknown size") {
    options.tensors[0].shape = {8, -1};
    expected = "no fixed size, and variable_bytes gives it no memory";
  }
  SECTION("strings that lie as numbers") {
    options.tensors[0].dtype = static_cast<uint8_t>(TensorDType::kString);
    expected = "kind and dtype do not belong together: 0 and 14 (tensor \"words\")";
  }
  SECTION("no rows") {
    options.tensors[0].shape = {};
    expected = "needs an axis of rows";
  }
  SECTION("no tensors") {
    options.tensors.clear();
    expected = "1 to 4096 tensors: 0";
  }
  SECTION("too many tensors") {
    options.tensors.resize(4097, options.tensors[0]);
    expected = "1 to 4096 tensors: 4097";
  }
  SECTION("a long name") {
    options.tensors[0].name = std::string(129, 'n');
    expected = "1 to 128 bytes: 129";
  }
  SECTION("too many slots") {
    options.slots_max = 65;
    expected = "at most 64";
  }
  SECTION("no slots") {
    options.slots = 0;
    expected = "slots must be 1 to";
  }
  const Status status = Writer::Create(options, &writer);
  CHECK(status.code == code);
  CHECK_THAT(status.message, Catch::Contains(expected));
  CHECK(writer == nullptr);
}

}  // namespace
}  // namespace penstock::ring
