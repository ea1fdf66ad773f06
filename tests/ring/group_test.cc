// Groups, verdicts and quarantine, with writer and consumers in one thread.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ring/writer.h"
#include "tests/ring/attached.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

TEST_CASE("what stands in front of the first consumer's place is not kept for anybody") {
  const auto writer = MakeWriter();
  CHECK(Produce(writer.get()) == 3);
  ConsumerPosition position;
  position.step = 2;
  Attached consumer(writer.get(), {}, position);
  CHECK(Produce(writer.get()) == 5);
  CHECK(consumer.Take().step == 2);
}

// The ring as the writer sees it.
struct Tables {
  explicit Tables(Writer* writer) {
    ConsumerHandle handle;
    REQUIRE(writer->Attach("looks", getpid(), &handle).ok());
    uint8_t* const ring = MappedAt(handle.segment_fd);
    const auto& header = *reinterpret_cast<const SegmentHeader*>(ring);
    slots = reinterpret_cast<SlotEntry*>(ring + header.slot_table_offset);
    steps = reinterpret_cast<RingEntry*>(ring + header.ring_table_offset);
    writer->Detach(handle.id);
  }
  SlotEntry* slots;
  RingEntry* steps;
};

TEST_CASE("who comes from further on than the ring keeps its cursor until it takes a step") {
  auto writer = MakeWriter();
  ConsumerSpec spec;
  spec.identity = 1;
  ConsumerPosition position;
  position.step = 7;
  position.cursor = "c7";
  {
    Attached first(writer.get(), spec, position);
    CHECK(first.reader().Where().step == 7);
    CHECK(first.reader().Where().cursor == "c7");
    first.Detach();
  }
  // What the ring knows it knows better.
  SegmentOptions options = SmallRing();
  options.first_step = 7;
  options.first_cursor = "of the ring";
  auto other = MakeWriter(options);
  Attached again(other.get(), spec, position);
  CHECK(again.reader().Where().cursor == "of the ring");
}

TEST_CASE("a slot that does not hold the step that it should is an error and no batch") {
  for (const bool split : {false, true}) {
    INFO("split " << split);
    const auto writer = MakeWriter();
    const Tables tables(writer.get());
    Attached consumer(writer.get(), split ? Split(1) : ConsumerSpec());
    CHECK(Produce(writer.get()) == 3);
    // Rows that the trainer would look at are never more than there are.
    for (int slot = 0; slot < 3; ++slot) tables.slots[slot].valid_rows = UINT32_MAX;
    const Lease lease = consumer.Take();
    CHECK(lease.rows == kWords / 2);
    CHECK(lease.valid_rows == lease.rows);
    for (int slot = 0; slot < 3; ++slot) tables.slots[slot].step += 50;
    tables.steps[1].step += 50;
    Lease other;
    for (int i = 0; i < 2; ++i) {
      CHECK(consumer.Next(&other) == Reader::Result::kFailed);
      CHECK(consumer.reader().error().code == Code::kInternal);
      CHECK_THAT(consumer.reader().error().message,
                 Catch::Contains(split ? "does not hold it" : "is not in the ring"));
    }
  }
}

TEST_CASE("a slot that is being filled says that it holds no step") {
  const auto writer = MakeWriter();
  const Tables tables(writer.get());
  Attached consumer(writer.get(), {});
  CHECK(Produce(writer.get()) == 3);
  consumer.reader().Release(consumer.Take());
  const int slot = writer->TryClaim();
  REQUIRE(slot >= 0);
  CHECK(tables.slots[slot].step == kNoStep);
}

TEST_CASE("of what was returned to a split group the last steps are reported, and no more") {
  const auto writer = MakeWriter();
  Attached worker(writer.get(), Split(1));
  const uint64_t steps = 3 * kMaxReportedLeases;
  for (uint64_t step = 0; step < steps; ++step) {
    Produce(writer.get());
    worker.reader().Release(worker.Take());
  }
  const ConsumerPosition where = worker.reader().Where();
  CHECK(where.held.empty());
  REQUIRE(where.returned.size() == kMaxReportedLeases);
  CHECK(where.returned.front() == steps - kMaxReportedLeases);
  CHECK(where.returned.back() == steps - 1);
}

TEST_CASE("a group that is another one is not joined") {
  const auto writer = MakeWriter();
  const auto refused = [&](const ConsumerSpec& spec, const char* why) {
    ConsumerHandle handle;
    const Status status = writer->Attach(spec, {}, getpid(), &handle);
    INFO(why);
    CHECK(status.code == Code::kFailedPrecondition);
    CHECK_THAT(status.message, Catch::Contains(why));
  };
  Attached once(writer.get(), Split(1, /*at_most_once=*/true));
  refused(Split(2, /*at_most_once=*/false), "it delivers at most once");
  ConsumerSpec rank = Rank(0, 4);
  rank.replicas = 2;
  Attached first(writer.get(), rank);
  refused(Rank(1, 4), "4 ranks of 2 replicas, not 4 of 1");
  rank.world_size = 2;
  refused(rank, "4 ranks of 2 replicas, not 2 of 2");
  ConsumerSpec broadcast = Rank(0, 4);
  broadcast.mode = GroupMode::kBroadcast;
  refused(broadcast, "its mode is rank, not broadcast");
}

TEST_CASE("who waits for a step of a split group hears of the end at once") {
  const auto writer = MakeWriter();
  Attached waits(writer.get(), Split(1));
  Lease lease;
  CHECK(waits.reader().Next(0, &lease) == Reader::Result::kTimeout);
  writer->Finish(Code::kOk, "");
  CHECK(waits.reader().Next(0, &lease) == Reader::Result::kEnd);
}

TEST_CASE(
    "a split group has no worker more than the ring has slots for all of them and the next step") {
  // Three slots, and no memory for more.
  const auto writer = MakeWriter(SmallRing(3, 3));
  Attached first(writer.get(), Split(1)), second(writer.get(), Split(2));
  ConsumerHandle handle;
  const Status status = writer->Attach(Split(3), {}, getpid(), &handle);
  CHECK(status.code == Code::kResourceExhausted);
  CHECK(status.message.find("3 slots") != std::string::npos);
}

TEST_CASE("what a dead consumer of a split group held is given out again, marked") {
  auto writer = MakeWriter();
  Produce(writer.get());
  Attached first(writer.get(), Split(1)), second(writer.get(), Split(2));
  CHECK(first.Take().step == 0);
  const Lease done = first.Take();
  CHECK(done.step == 1);
  CHECK(second.Take().step == 2);
  first.reader().Release(done);
  first.Detach();
  const Lease again = second.Take();
  CHECK(again.step == 0);
  CHECK(again.redelivered);
}

TEST_CASE("of those who wait in a split group the one who has waited longest is next") {
  auto writer = MakeWriter();
  Attached first(writer.get(), Split(1)), second(writer.get(), Split(2)),
      third(writer.get(), Split(3));
  const auto waits = [](Attached& one) {
    Lease lease;
    return one.Next(&lease) == Reader::Result::kTimeout;
  };
  CHECK(waits(third));
  CHECK(waits(second));
  CHECK(waits(first));
  // Who was served asks anew behind the others.
  Attached* const in_line[] = {&third, &second, &first, &third, &second, &first};
  for (uint64_t step = 0; step < std::size(in_line); ++step) {
    Produce(writer.get(), step + 1);
    const Lease lease = in_line[step]->Take();
    CHECK(lease.step == step);
    in_line[step]->reader().Release(lease);
    CHECK(waits(*in_line[step]));
  }
}

TEST_CASE("nobody gets more of a split group's steps than its share of the ring and one") {
  const auto writer = MakeWriter();
  Attached greedy(writer.get(), Split(1)), other(writer.get(), Split(2));
  const uint64_t produced = Produce(writer.get());
  const uint32_t share = greedy.reader().lease_share();
  REQUIRE(share + 2 <= produced);
  for (uint64_t step = 0; step <= share; ++step) CHECK(greedy.Take().step == step);
  Lease lease;
  CHECK(greedy.Next(&lease) == Reader::Result::kTimeout);
  CHECK(other.Take().step == share + 1);
}

TEST_CASE("who has left a split group gets none of its steps, though it had asked") {
  const auto writer = MakeWriter();
  Attached leaves(writer.get(), Split(1)), stays(writer.get(), Split(2));
  Lease lease;
  CHECK(leaves.Next(&lease) == Reader::Result::kTimeout);
  leaves.reader().Leave();
  Produce(writer.get());
  const Lease first = stays.Take();
  CHECK(first.step == 0);
  CHECK_FALSE(first.redelivered);
}

TEST_CASE("a consumer that attaches again takes the place of what it was before") {
  const auto writer = MakeWriter();
  Attached before(writer.get(), Split(7)), other(writer.get(), Split(8));
  Attached again(writer.get(), Split(7));
  const auto consumers = writer->Consumers();
  REQUIRE(consumers.size() == 3);
  CHECK(consumers[0].detached);
  CHECK_FALSE(consumers[1].detached);
  CHECK_FALSE(consumers[2].detached);
  Lease lease;
  CHECK(before.Next(&lease) == Reader::Result::kFailed);
}

TEST_CASE("how far a consumer is behind is a matter of what it will take") {
  auto writer = MakeWriter();
  Attached plain(writer.get(), ConsumerSpec{});
  Attached one(writer.get(), Split(1)), other(writer.get(), Split(2));
  const uint64_t published = Produce(writer.get());
  CHECK(one.Take().step == 0);
  CHECK(one.Take().step == 1);
  CHECK(plain.Take().step == 0);
  const auto lags = [&] {
    std::vector<uint64_t> found;
    for (const ConsumerStats& stats : writer->Consumers()) found.push_back(stats.lag);
    return found;
  };
  // Of a split group, what nobody has yet.
  CHECK(lags() == std::vector<uint64_t>{published - 1, published - 2, published - 2});
  plain.reader().Leave();
  CHECK(lags() == std::vector<uint64_t>{0, published - 2, published - 2});
}

TEST_CASE("fault 62: steps beyond 2^32 and up to 2^63 go through a ring in groups of all kinds") {
  for (const uint64_t first : {(uint64_t{1} << 32) - 6, (uint64_t{1} << 63) - 20}) {
    CAPTURE(first);
    SegmentOptions options = SmallRing();
    options.first_step = first;
    auto writer = MakeWriter(options);
    Attached plain(writer.get(), ConsumerSpec{}), rank(writer.get(), Rank(0, 1));
    Attached one(writer.get(), Split(1)), other(writer.get(), Split(2));
    for (uint64_t step = first; step < first + 19; ++step) {
      Produce(writer.get());
      CAPTURE(step);
      for (Attached* consumer : {&plain, &rank, step % 3 == 0 ? &one : &other}) {
        const Lease lease = consumer->Take();
        CHECK(lease.step == step);
        consumer->reader().Release(lease);
      }
    }
    uint64_t shared = 0;  // a split group's positions are numbers of grants
    for (const ConsumerStats& stats : writer->Consumers()) {
      CAPTURE(stats.group);
      CHECK(stats.leases == 0);
      if (stats.mode == GroupMode::kSplit) {
        shared += stats.position;
      } else {
        CHECK(stats.position == first + 19);
      }
    }
    CHECK(shared == 19);
  }
}

TEST_CASE("a slot of a split group is free when its one holder has released it") {
  auto writer = MakeWriter();
  Attached first(writer.get(), Split(1)), second(writer.get(), Split(2));
  for (uint64_t step = 0; step < 100; ++step) {
    Produce(writer.get());
    Attached& turn = step % 3 == 0 ? first : second;
    const Lease lease = turn.Take();
    CHECK(lease.step == step);
    CHECK_FALSE(lease.redelivered);
    turn.reader().Release(lease);
  }
}

TEST_CASE("leases of an earlier ring are held until they are returned") {
  SplitState state;
  state.next = 5;
  state.entries = {{2, 1, false, ""}, {3, 1, false, ""}, {4, 2, false, ""}};
  SegmentOptions options = SmallRing();
  options.first_step = 2;
  auto writer = MakeWriter(options);
  writer->RestoreSplit("workers", state);
  ConsumerPosition position;
  position.held = {2};
  position.returned = {3};
  Attached first(writer.get(), Split(1), position);
  writer->EndRestore({});  // consumer 2 has not come back
  Produce(writer.get());
  const Lease again = first.Take();
  CHECK(again.step == 4);
  CHECK(again.redelivered);
  first.reader().Release(again);
  // Step 2 keeps its slot until its holder has let go of it.
  first.reader().ReturnEarlier(0);
  Produce(writer.get());
  CHECK(first.Take().step == 5);
}

TEST_CASE("a rank that is missing holds every step, and ends its group when it stays away") {
  auto writer = MakeWriter();
  Attached first(writer.get(), Rank(0, 2));
  Produce(writer.get());
  Lease lease = first.Take();
  first.reader().Release(lease);
  CHECK(writer->TryClaim() == -1);
  auto second = std::make_unique<Attached>(writer.get(), Rank(1, 2));
  CHECK(second->Take().step == 0);
  second->Detach();
  writer->Tick(kSecondNs, kSecondNs);
  CHECK(first.Take().step == 1);
  writer->Tick(2 * kSecondNs, kSecondNs);
  CHECK(first.Next(&lease) == Reader::Result::kFailed);
  CHECK(first.reader().error().code == static_cast<Code>(kVerdictPeerLost));
}

TEST_CASE("a rank that is catching up elsewhere is not missed") {
  const auto writer = MakeWriter();
  Attached first(writer.get(), Rank(0, 2)), second(writer.get(), Rank(1, 2));
  second.Detach();
  Lease lease;
  for (uint64_t now_ns = kSecondNs; now_ns < 5 * kSecondNs; now_ns += kSecondNs) {
    writer->KeepPlace("ranks", 1);
    writer->KeepPlace("ranks", 77);
    writer->KeepPlace("others", 1);
    writer->Tick(now_ns, kSecondNs);
    CHECK(first.Next(&lease) == Reader::Result::kTimeout);
  }
  writer->Tick(5 * kSecondNs, kSecondNs);
  CHECK(first.Next(&lease) == Reader::Result::kFailed);
}

TEST_CASE("a group that was complete before a restart ends when a rank stays away") {
  using Names = std::set<std::string>;
  const struct {
    std::optional<Names> complete;
    bool ends;
  } kCases[] = {{Names{"ranks"}, true}, {std::nullopt, true}, {Names{"others"}, false}};
  for (const auto& [complete, ends] : kCases) {
    INFO("complete " << (complete ? *complete->begin() : "not known"));
    const auto writer = MakeWriter();
    Attached first(writer.get(), Rank(0, 2));
    CHECK(writer->CompleteGroups().empty());
    writer->EndRestore(complete);
    CHECK(writer->CompleteGroups() == (ends ? Names{"ranks"} : Names{}));
    writer->Tick(kSecondNs, kSecondNs);
    writer->Tick(2 * kSecondNs, kSecondNs);
    // One whose ranks have never all been there waits for them.
    Lease lease;
    CHECK(first.Next(&lease) == (ends ? Reader::Result::kFailed : Reader::Result::kTimeout));
  }
}

TEST_CASE("who holds others up is sent on after its lag, though they wake up now and then") {
  constexpr uint64_t kLookNs = 25'000'000;
  for (const bool splits : {false, true}) {
    INFO("split " << splits);
    const auto writer = MakeWriter(SmallRing(3, 3));
    Attached frozen(writer.get(), Slow(SlowPolicy::kBlock, /*lag_ms=*/3000));
    Attached waits(writer.get(), splits ? Split(1) : ConsumerSpec{});
    Produce(writer.get());
    for (int step = 0; step < 3; ++step) waits.reader().Release(waits.Take());
    REQUIRE(Produce(writer.get()) == 3);
    std::atomic<uint64_t>& wake_at = waits.page().wake_at;
    for (uint64_t look = 0; look < 120; ++look) {
      // Every fourth look finds it awake.
      wake_at = look % 4 == 3 ? kAwake : waits.page().position + 1;
      writer->Tick(kSecondNs + look * kLookNs, kSecondNs);
      CHECK_FALSE(IsSentAway(*writer, frozen.id()));
    }
    writer->Tick(kSecondNs + 120 * kLookNs, kSecondNs);
    CHECK(IsSentAway(*writer, frozen.id()));
  }
}

TEST_CASE("who has what it waited for is held up by nobody") {
  const auto writer = MakeWriter(SmallRing(3, 3));
  Attached slow(writer.get(), Slow(SlowPolicy::kDetach));
  Attached waits(writer.get(), ConsumerSpec{});
  Produce(writer.get(), 2);
  for (int step = 0; step < 2; ++step) waits.reader().Release(waits.Take());
  waits.page().wake_at = 3;
  writer->Tick(kSecondNs, kSecondNs);
  Produce(writer.get());
  waits.page().wake_at = kAwake;
  waits.reader().Release(waits.Take());
  CHECK(writer->TryClaim() == -1);
  writer->Tick(kSecondNs + 25'000'000, kSecondNs);
  CHECK_FALSE(IsSentAway(*writer, slow.id()));
}

TEST_CASE("what was skipped for a consumer that does not look is counted once") {
  const auto writer = MakeWriter(SmallRing(3, 3));
  Attached frozen(writer.get(), Slow(SlowPolicy::kSkip));
  Attached waits(writer.get(), ConsumerSpec{});
  uint64_t steps = 0;
  for (uint64_t look = 1; look < 10; ++look) {
    steps = Produce(writer.get());
    while (waits.page().position < steps) waits.reader().Release(waits.Take());
    waits.page().wake_at = steps + 1;
    writer->Tick(look * kSecondNs, kSecondNs);
    waits.page().wake_at = kAwake;
  }
  REQUIRE(steps > 10);
  CHECK(writer->Consumers()[0].skipped <= steps);
  CHECK(writer->Consumers()[0].skipped > 0);
}

TEST_CASE("nobody waits for a rank that has left while it caught up elsewhere") {
  for (const bool leaves : {false, true}) {
    const auto writer = MakeWriter();
    Attached first(writer.get(), Rank(0, 2)), second(writer.get(), Rank(1, 2));
    first.Detach();
    if (leaves) writer->LeavePlace("ranks", 0);
    for (uint64_t look = 1; look < 5; ++look) writer->Tick(look * kSecondNs, kSecondNs);
    CHECK(IsSentAway(*writer, second.id()) != leaves);
  }
}

TEST_CASE("another user's consumer is taken over with the right to send it away alone") {
  auto writer = MakeWriter();
  ConsumerSpec spec = Rank(0, 1);
  spec.uid = 1000;
  Attached owner(writer.get(), spec);
  ConsumerSpec stranger = Rank(0, 1);
  stranger.uid = 2000;
  stranger.identity = 7;
  stranger.take_over = true;
  ConsumerHandle handle;
  const Status refused = writer->Attach(stranger, {}, getpid(), &handle);
  CHECK(refused.code == Code::kPermissionDenied);
  CHECK(refused.message.find("another user's") != std::string::npos);
  Produce(writer.get());
  CHECK(owner.Take().step == 0);
  stranger.may_send_away = true;
  Attached successor(writer.get(), stranger);
  CHECK(successor.Take().step == 0);  // which its predecessor has not let go of
}

TEST_CASE("who has left has left its name and its place, whatever it still holds") {
  auto writer = MakeWriter();
  Produce(writer.get());
  ConsumerSpec named;
  named.name = "trainer";
  named.identity = 1;
  ConsumerSpec worker = Split(3);
  worker.name = "worker";
  for (ConsumerSpec spec : {Rank(0, 2), named, worker}) {
    const Status status = [&] {
      Attached first(writer.get(), spec);
      const Lease held = first.Take();
      spec.identity += 10;
      ConsumerHandle handle;
      CHECK(writer->Attach(spec, {}, getpid(), &handle).code == Code::kAlreadyExists);
      first.reader().Leave();
      Attached second(writer.get(), spec);
      second.reader().Release(second.Take());
      Produce(writer.get());
      CHECK(IsIntact(held));
      // The group, too, is the successor's: another mode finds that one there.
      ConsumerSpec other = spec;
      other.name = "other";
      other.mode = spec.mode == GroupMode::kBroadcast ? GroupMode::kSplit : GroupMode::kBroadcast;
      CHECK(writer->Attach(other, {}, getpid(), &handle).code == Code::kFailedPrecondition);
      second.reader().Leave();
      first.Detach();
      const Status left = writer->Attach(other, {}, getpid(), &handle);
      writer->Detach(handle.id);
      second.Detach();
      return left;
    }();
    CHECK(status.ok());
  }
}

TEST_CASE("a split group that all have left holds nobody up, whatever they still hold") {
  auto writer = MakeWriter();
  Attached plain(writer.get(), ConsumerSpec{});
  Attached worker(writer.get(), Split(1));
  Produce(writer.get());
  const Lease held = worker.Take();
  worker.reader().Leave();
  writer->Tick(kSecondNs, kSecondNs);
  writer->Tick(2 * kSecondNs, kSecondNs);
  const auto take = [&](uint64_t step) {
    Produce(writer.get());
    const Lease lease = plain.Take();
    CHECK(lease.step == step);
    plain.reader().Release(lease);
  };
  for (uint64_t step = 0; step < 50; ++step) take(step);
  CHECK(IsIntact(held));
  // The next group of that name is another one; what was held is one slot until it is let go of.
  Attached next(writer.get(), Split(2));
  Produce(writer.get());
  CHECK(next.Take().step >= 40);
  CHECK(IsIntact(held));
  worker.reader().Release(held);
  worker.Detach();
  next.reader().Leave();
  next.Detach();
  writer->Tick(3 * kSecondNs, kSecondNs);
  writer->Tick(4 * kSecondNs, kSecondNs);
  for (uint64_t step = 50; step < 100; ++step) take(step);
}

TEST_CASE("fault 39: what was taken with a large share of the ring stays when others come") {
  constexpr uint32_t kSlots = 8;
  auto writer = MakeWriter(SmallRing(kSlots, kSlots));
  Attached keeper(writer.get(), ConsumerSpec{});
  REQUIRE(keeper.reader().lease_share() == kSlots - 1);
  REQUIRE(Produce(writer.get()) == kSlots);
  std::vector<Lease> kept;
  while (kept.size() < kSlots - 1) kept.push_back(keeper.Take());
  Attached other(writer.get(), ConsumerSpec{});
  REQUIRE(other.reader().lease_share() < kept.size());
  REQUIRE(writer->Dismiss(keeper.id(), "DETACHED: it held up others"));
  for (uint64_t step = 0; step < 4 * kSlots; ++step) {
    const Lease lease = other.Take();
    CHECK(lease.step == step);
    other.reader().Release(lease);
    Produce(writer.get());
  }
  for (const Lease& lease : kept) CHECK(IsIntact(lease));
}

TEST_CASE("a split group that is forgotten is forgotten for good") {
  // Counts the groups that a new daemon would bring back.
  struct Log final : SplitLog {
    void Begin(std::string_view, bool, const SplitUser&, uint64_t, std::string_view) override {
      ++groups;
    }
    void Set(std::string_view, const SplitEntry&) override {}
    void Clear(std::string_view, uint64_t) override {}
    void SetNext(std::string_view, uint64_t, std::string_view) override {}
    void End(std::string_view group) override {
      CHECK(group == "workers");
      --groups;
    }
    int groups = 0;
  } log;
  SegmentOptions options = SmallRing();
  options.split_log = &log;
  auto writer = MakeWriter(options);
  Attached stays(writer.get(), ConsumerSpec{});
  {
    Attached worker(writer.get(), Split(1));
    CHECK(log.groups == 1);
    Produce(writer.get());
    CHECK(worker.Take().step == 0);
    worker.Detach();
  }
  writer->Tick(kSecondNs, 2 * kSecondNs);
  CHECK(log.groups == 1);
  writer->Tick(4 * kSecondNs, 2 * kSecondNs);
  CHECK(log.groups == 0);
}

TEST_CASE(
    "fault 39: what was held of a forgotten group stays though another of its name is forgotten") {
  const auto writer = MakeWriter(SmallRing(8, 9));
  Attached stays(writer.get(), ConsumerSpec{});
  const auto go_on = [&] {
    for (int i = 0; i < 20; ++i) {
      stays.reader().Release(stays.Take());
      Produce(writer.get());
    }
  };
  Attached holder(writer.get(), Split(1));
  Produce(writer.get());
  const Lease held = holder.Take();
  holder.reader().Leave();
  for (uint64_t second = 1; second <= 7; second += 3) {
    writer->Tick(second * kSecondNs, kSecondNs);
    writer->Tick((second + 1) * kSecondNs, kSecondNs);
    go_on();
    CHECK(IsIntact(held));
    Attached next(writer.get(), Split(second + 1));
    next.reader().Release(next.Take());
    next.Detach();
  }
}

TEST_CASE("what was given to who leaves a split group and was not taken goes to the others") {
  for (const bool at_most_once : {false, true}) {
    INFO("at most once " << at_most_once);
    const auto writer = MakeWriter(SmallRing(8, 9));
    Attached leaves(writer.get(), Split(1, at_most_once)),
        stays(writer.get(), Split(2, at_most_once));
    Produce(writer.get(), 1);
    const Lease held = leaves.Take();
    CHECK(held.step == 0);
    Lease lease;
    CHECK(leaves.Next(&lease) == Reader::Result::kTimeout);
    Produce(writer.get(), 2);
    leaves.reader().Leave();
    Produce(writer.get(), 3);
    writer->Finish(Code::kOk, "");
    for (uint64_t step = 1; step < 3; ++step) {
      lease = stays.Take();
      CHECK(lease.step == step);
      CHECK_FALSE(lease.redelivered);
      stays.reader().Release(lease);
    }
    CHECK(IsIntact(held));
    leaves.reader().Release(held);
    CHECK(stays.Next(&lease) == Reader::Result::kEnd);
  }
}

TEST_CASE("the end of a split group comes though whoever had its last step says nothing more") {
  const auto writer = MakeWriter();
  Attached last(writer.get(), Split(1)), waits(writer.get(), Split(2));
  Produce(writer.get(), 1);
  const Lease lease = last.Take();
  writer->Finish(Code::kOk, "");
  Lease none;
  CHECK(waits.Next(&none) == Reader::Result::kTimeout);
  last.reader().Release(lease);
  CHECK(waits.reader().Next(0, &none) == Reader::Result::kTimeout);
  writer->Tick(kSecondNs, kSecondNs);
  CHECK(waits.reader().Next(0, &none) == Reader::Result::kEnd);
}

TEST_CASE("who was told of a split group's end gets no step that comes back, and holds up nobody") {
  const auto writer = MakeWriter();
  Attached holder(writer.get(), Split(1)), other(writer.get(), Split(2));
  Produce(writer.get(), 1);
  CHECK(holder.Take().step == 0);
  writer->Finish(Code::kOk, "");
  Lease lease;
  CHECK(other.Next(&lease) == Reader::Result::kTimeout);
  // Who asks for another one does not wait for what it holds itself.
  CHECK(holder.Next(&lease) == Reader::Result::kEnd);
  CHECK(other.Next(&lease) == Reader::Result::kEnd);
  Attached late(writer.get(), Split(3));
  CHECK(late.Next(&lease) == Reader::Result::kEnd);
  holder.Detach();
  Attached again(writer.get(), Split(1));
  lease = again.Take();
  CHECK(lease.step == 0);
  CHECK(lease.redelivered);
}

TEST_CASE(
    "the end of a split group waits for nobody who has left, whose step is for who comes next") {
  const auto writer = MakeWriter();
  Attached leaves(writer.get(), Split(1)), stays(writer.get(), Split(2));
  Produce(writer.get(), 1);
  CHECK(leaves.Take().step == 0);
  writer->Finish(Code::kOk, "");
  Lease lease;
  CHECK(stays.Next(&lease) == Reader::Result::kTimeout);
  leaves.reader().Leave();
  CHECK(stays.Next(&lease) == Reader::Result::kEnd);
  leaves.Detach();
  Attached next(writer.get(), Split(3));
  lease = next.Take();
  CHECK(lease.step == 0);
  CHECK(lease.redelivered);
}

TEST_CASE("a failure ends a split group's stream though a step of it may come back") {
  SplitState state;
  state.next = 2;
  // Nobody has step 1, and this daemon does not come as far as to make it.
  state.entries = {{0, 1, false, ""}, {1, 0, true, ""}};
  auto writer = MakeWriter();
  writer->RestoreSplit("workers", state);
  ConsumerPosition position;
  position.held = {0};
  Attached holder(writer.get(), Split(1), position), waits(writer.get(), Split(2));
  writer->EndRestore({});
  Lease lease;
  CHECK(waits.Next(&lease) == Reader::Result::kTimeout);
  writer->Finish(Code::kNotFound, "it was deleted");
  CHECK(waits.reader().Next(0, &lease) == Reader::Result::kFailed);
  CHECK(waits.reader().error().code == Code::kNotFound);
}

TEST_CASE("a failure ends a split group's stream behind the steps that are there") {
  const auto writer = MakeWriter();
  Attached holder(writer.get(), Split(1)), other(writer.get(), Split(2));
  Produce(writer.get(), 2);
  CHECK(holder.Take().step == 0);
  writer->Finish(Code::kDataLoss, "it is damaged");
  CHECK(other.Take().step == 1);
  Lease lease;
  CHECK(other.Next(&lease) == Reader::Result::kFailed);
}

TEST_CASE(
    "who holds a step at the end of a split group's stream notices that the daemon has gone") {
  const auto writer = MakeWriter();
  Attached holder(writer.get(), Split(1));
  Produce(writer.get(), 1);
  const Lease lease = holder.Take();
  writer->Finish(Code::kOk, "");
  CHECK_FALSE(holder.reader().IsDeserted());
  holder.HangUp();
  CHECK(holder.reader().IsDeserted());
  // Once it was told of the end, it has nothing to come back for.
  holder.reader().Release(lease);
  Lease none;
  CHECK(holder.reader().Next(0, &none) == Reader::Result::kTimeout);
  writer->Deal();
  CHECK_FALSE(holder.reader().IsDeserted());
}

TEST_CASE("who keeps what it took with a larger share goes on, and so do those who came") {
  for (const bool splits : {false, true}) {
    INFO("split " << splits);
    const auto writer = MakeWriter(SmallRing(8, 20));
    const auto spec = [splits](uint64_t identity) {
      return splits ? Split(identity) : ConsumerSpec{};
    };
    Attached keeper(writer.get(), spec(1));
    CHECK(Produce(writer.get()) == 8);
    std::vector<Lease> kept, of_other;
    while (kept.size() < keeper.reader().lease_share()) kept.push_back(keeper.Take());
    CHECK(kept.size() == 7);
    Attached other(writer.get(), spec(2));
    REQUIRE(other.reader().lease_share() < kept.size());
    // Where everybody takes all, others than the first one keeps.
    const auto catch_up = [splits](Attached& one, Attached& with) {
      while (!splits && one.reader().position() < with.reader().position())
        one.reader().Release(one.Take());
    };
    catch_up(other, keeper);
    while (of_other.size() < other.reader().lease_share()) {
      Produce(writer.get());
      of_other.push_back(other.Take());
    }
    catch_up(keeper, other);
    // Beyond their shares both copy.
    for (int i = 0; i < 20; ++i) {
      for (Attached* const one : {&keeper, &other}) {
        Produce(writer.get());
        one->reader().Release(one->Take());
      }
    }
    for (const Lease& lease : kept) CHECK(IsIntact(lease));
    // What is let go of is shared again.
    const uint32_t share = other.reader().lease_share();
    for (const Lease& lease : kept) keeper.reader().Release(lease);
    writer->Tick(kSecondNs, kSecondNs);
    CHECK(other.reader().lease_share() > share);
  }
}

TEST_CASE(
    "who holds more than a ring has from now on gets further batches, and the ring is what it is "
    "to be") {
  const auto writer = MakeWriter(SmallRing(8, 20));
  Attached keeper(writer.get(), ConsumerSpec{});
  Produce(writer.get());
  std::vector<Lease> kept;
  while (kept.size() < 5) kept.push_back(keeper.Take());
  REQUIRE(writer->SetSlots(3).ok());
  CHECK(keeper.reader().lease_share() == 2);
  for (int i = 0; i < 20; ++i) {
    keeper.reader().Release(keeper.Take());
    Produce(writer.get());
  }
  for (const Lease& lease : kept) keeper.reader().Release(lease);
  writer->Tick(kSecondNs, kSecondNs);
  CHECK(writer->slots() == 3);
}

TEST_CASE("where nobody is waited for, a split group lives as long as somebody takes its steps") {
  auto writer = MakeWriter();
  Attached plain(writer.get(), ConsumerSpec{});
  Attached worker(writer.get(), Split(1));
  writer->Tick(kSecondNs, 0);
  Produce(writer.get());
  CHECK(worker.Take().step == 0);
  writer->Tick(2 * kSecondNs, 0);
  CHECK(worker.Take().step == 1);
}

TEST_CASE("a rank that has left is not missed, though it still holds a step") {
  auto writer = MakeWriter();
  Attached first(writer.get(), Rank(0, 2)), second(writer.get(), Rank(1, 2));
  Produce(writer.get());
  const Lease held = second.Take();
  second.reader().Leave();
  CHECK(IsIntact(held));
  for (uint64_t now_ns = kSecondNs; now_ns < 4 * kSecondNs; now_ns += kSecondNs)
    writer->Tick(now_ns, kSecondNs);
  second.Detach();
  for (uint64_t now_ns = 4 * kSecondNs; now_ns < 8 * kSecondNs; now_ns += kSecondNs)
    writer->Tick(now_ns, kSecondNs);
  for (uint64_t step = 0; step < 20; ++step) {
    const Lease lease = first.Take();
    CHECK(lease.step == step);
    first.reader().Release(lease);
    Produce(writer.get());
  }
}

TEST_CASE(
    "faults 39 and 46: a name is taken once, or taken over, and what is held is in quarantine") {
  auto writer = MakeWriter();
  ConsumerSpec spec;
  spec.name = "trainer";
  spec.identity = 1;
  Attached first(writer.get(), spec);
  Produce(writer.get());
  const Lease held = first.Take();
  spec.identity = 2;
  ConsumerHandle handle;
  CHECK(writer->Attach(spec, {}, getpid(), &handle).code == Code::kAlreadyExists);
  spec.take_over = true;
  Attached second(writer.get(), spec);
  Lease lease;
  CHECK(first.Next(&lease) == Reader::Result::kFailed);
  CHECK(first.reader().error().code == static_cast<Code>(kVerdictDetached));
  // Quarantine: what the first one holds is not used again while it lives.
  for (uint64_t step = 0; step < 50; ++step) {
    lease = second.Take();
    CHECK(lease.step == step);
    second.reader().Release(lease);
    Produce(writer.get());
  }
  CHECK(IsIntact(held));
}

}  // namespace
}  // namespace penstock::ring
