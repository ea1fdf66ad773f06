// Who waits for whom, and until when: consumers of several users, with writer and consumers in one
// thread.
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ring/writer.h"
#include "tests/ring/attached.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

constexpr uint32_t kOwner = 1;
constexpr uint32_t kGuest = 7;
constexpr uint32_t kOtherGuest = 8;
constexpr uint64_t kTickNs = 25'000'000;

ConsumerSpec Of(uint32_t uid, ConsumerSpec spec = {}) {
  spec.uid = uid;
  spec.is_guest = uid != kOwner;
  return spec;
}

// A daemon's clock beside a writer, and one consumer that reads all the time.
class Clocked {
 public:
  explicit Clocked(const SegmentOptions& options = SmallRing(3, 9), uint32_t reader_uid = kOwner)
      : writer_(MakeWriter(options)),
        reads_(std::make_unique<Attached>(writer_.get(), Of(reader_uid))) {}

  Writer* writer() { return writer_.get(); }
  Attached& reads() { return *reads_; }

  // Takes what there is, as a trainer that is never busy. Returns how many batches it got.
  uint64_t Read() {
    uint64_t taken = 0;
    while (true) {
      Produce(writer());
      Lease lease;
      if (reads_->Next(&lease) != Reader::Result::kBatch) break;
      REQUIRE(IsIntact(lease));
      reads_->reader().Release(lease);
      // A stream without an end is left in the middle.
      if (++taken == kMany) break;
    }
    return taken;
  }
  // As many as it wants, without a look at the clock.
  static constexpr uint64_t kMany = 50;

  // Ticks for so long while it asks for more; ends early where `ends` says so. Returns the batches
  // that it got.
  template <typename Ends>
  uint64_t Run(double seconds, Ends ends) {
    uint64_t taken = 0;
    const uint64_t end_ns = now_ns_ + static_cast<uint64_t>(seconds * kSecondNs);
    for (; now_ns_ < end_ns && !ends(); now_ns_ += kTickNs) {
      taken += Read();
      reads_->page().wake_at = reads_->page().position + 1;
      writer_->Tick(now_ns_, 10 * kSecondNs);
      reads_->page().wake_at = kAwake;
    }
    return taken;
  }
  uint64_t Run(double seconds) {
    return Run(seconds, [] { return false; });
  }
  // Seconds until it gets many batches without a pause.
  double UntilItGoesOn(double most_s) {
    const uint64_t begin_ns = now_ns_;
    bool goes_on = false;
    Run(most_s, [&] { return goes_on = Read() == kMany; });
    return goes_on ? static_cast<double>(now_ns_ - begin_ns) * 1e-9 : 1e9;
  }

 private:
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<Attached> reads_;
  uint64_t now_ns_ = kSecondNs;
};

bool HasGroup(const Writer& writer, const std::string& name) {
  for (const GroupStats& group : writer.Groups()) {
    if (group.name == name) return true;
  }
  return false;
}

std::string EndOf(Attached& consumer) {
  Lease lease;
  Reader::Result result = consumer.Next(&lease);
  while (result == Reader::Result::kBatch) {
    consumer.reader().Release(lease);
    result = consumer.Next(&lease);
  }
  if (result == Reader::Result::kAgain) return "again";
  return result == Reader::Result::kFailed ? consumer.reader().error().message : "goes on";
}

TEST_CASE("fault 69: a guest's worker that never asks holds up nobody, not for a moment") {
  Clocked ring;
  Attached idle(ring.writer(), Of(kGuest, Split(1)));
  CHECK(ring.Read() == Clocked::kMany);
  // It has not begun: what it gets is what the ring has when it asks.
  const Lease lease = idle.Take();
  CHECK(lease.step >= Clocked::kMany - 9);
  CHECK_FALSE(lease.redelivered);
}

TEST_CASE("fault 69: a worker of the owner is waited for as long as it takes") {
  Clocked ring;
  Attached busy(ring.writer(), Of(kOwner, Split(1)));
  ring.Read();
  const Lease first = busy.Take();
  CHECK(first.step == 0);
  CHECK(ring.Run(1000) < 20);
  const std::vector<HoldUpStats> held = ring.writer()->HoldUps();
  REQUIRE(held.size() == 1);
  CHECK(held[0].consumer == busy.id());
  CHECK(held[0].group == "workers");
  CHECK(held[0].held_ns > 900 * kSecondNs);
  CHECK_FALSE(held[0].most_ns);
  busy.reader().Release(first);
  for (uint64_t step = 1; step < 50; ++step) {
    const Lease lease = busy.Take();
    REQUIRE(lease.step == step);
    busy.reader().Release(lease);
    ring.Read();
  }
}

TEST_CASE("fault 69: a guest's worker that stops asking is waited for ten seconds, and told why") {
  Clocked ring;
  Attached stops(ring.writer(), Of(kGuest, Split(1)));
  ring.Read();
  const Lease held = stops.Take();
  const double seconds = ring.UntilItGoesOn(100);
  CHECK(seconds > 9.5);
  CHECK(seconds < 11);
  CHECK(IsIntact(held));
  CHECK(EndOf(stops) ==
        "DETACHED: it held up other consumers (group \"workers\", of user 7, who may only attach "
        "and is waited for 10 s)");
  CHECK_FALSE(HasGroup(*ring.writer(), "workers"));
  // Under another name it is waited for no longer at all, once it has begun.
  ConsumerSpec spec = Of(kGuest, Split(2));
  spec.group = "more workers";
  Attached again(ring.writer(), spec);
  again.reader().Release(again.Take());
  CHECK(ring.UntilItGoesOn(100) < 0.1);
}

TEST_CASE("fault 69: what a guest holds up of its own is its own affair") {
  Clocked ring(SmallRing(3, 9), kGuest);
  Attached pauses(ring.writer(), Of(kGuest, Split(1)));
  ring.Read();
  const Lease held = pauses.Take();
  CHECK(ring.Run(1000) < 20);
  pauses.reader().Release(held);
  CHECK(pauses.Take().step == 1);
}

TEST_CASE("fault 69: guests who drip are waited for a tenth of the time") {
  for (const bool splits : {false, true}) {
    INFO("split " << splits);
    Clocked ring;
    auto drips =
        std::make_unique<Attached>(ring.writer(), Of(kGuest, splits ? Split(1) : ConsumerSpec{}));
    uint64_t looks = 0, stalled = 0;
    for (; looks < 400 * 40; ++looks) {
      stalled += ring.Run(0.025) < Clocked::kMany ? 1 : 0;
      if (looks % 40 != 0) continue;
      // Each second a batch; sent away, it comes back at once.
      Lease lease;
      const Reader::Result result = drips->Next(&lease);
      if (result == Reader::Result::kBatch) {
        drips->reader().Release(lease);
      } else if (result != Reader::Result::kTimeout) {
        drips->Detach();
        drips = std::make_unique<Attached>(ring.writer(),
                                           Of(kGuest, splits ? Split(1) : ConsumerSpec{}));
      }
    }
    CHECK(stalled < 10 * 40 + looks / 8);
  }
}

TEST_CASE("fault 69: a guest that takes nothing of a broadcast goes on by itself") {
  Clocked ring;
  ConsumerSpec patient = Of(kGuest);
  patient.lag_ms = UINT32_MAX;  // it cannot say how long others wait
  Attached idle(ring.writer(), patient);
  const double seconds = ring.UntilItGoesOn(100);
  CHECK(seconds > 9.5);
  CHECK(seconds < 11);
  CHECK(EndOf(idle) == "again");
}

TEST_CASE("fault 69: a group whose ranks never come is ended, an owner's after a minute") {
  for (const uint32_t uid : {kOwner, kGuest}) {
    INFO("user " << uid);
    Clocked ring;
    Attached lone(ring.writer(), Of(uid, Rank(0, 64)));
    ring.Read();
    lone.reader().Release(lone.Take());
    ring.Run(5);
    const std::vector<HoldUpStats> held = ring.writer()->HoldUps();
    REQUIRE(held.size() == 1);
    CHECK(held[0].missing == 63);
    CHECK(held[0].first_missing == 1);
    CHECK(held[0].world_size == 64);
    const double seconds = ring.UntilItGoesOn(1000);
    CHECK(seconds > (uid == kOwner ? 54 : 4));
    CHECK(seconds < (uid == kOwner ? 56 : 6));
    CHECK(EndOf(lone) ==
          "DETACHED: it held up other consumers (group \"ranks\", 63 of its 64 places, the first "
          "of rank 1, have never been taken)");
  }
}

TEST_CASE("fault 69: a guest's ranks that pause go on by themselves, and meet as what they were") {
  Clocked ring;
  auto first = std::make_unique<Attached>(ring.writer(), Of(kGuest, Rank(0, 2)));
  auto second = std::make_unique<Attached>(ring.writer(), Of(kGuest, Rank(1, 2)));
  ring.Read();
  CHECK(ring.UntilItGoesOn(100) < 11);
  CHECK(EndOf(*first) == "again");
  CHECK(EndOf(*second) == "again");
  first->Detach(), second->Detach();
  // Whoever comes back is missed by the group that was complete, and others go on meanwhile.
  first = std::make_unique<Attached>(ring.writer(), Of(kGuest, Rank(0, 2)));
  CHECK(ring.writer()->CompleteGroups() == std::set<std::string>{"ranks"});
}

TEST_CASE("fault 69: ranks of the owner that pause are waited for as long as it takes") {
  Clocked ring;
  Attached first(ring.writer(), Of(kOwner, Rank(0, 2))),
      second(ring.writer(), Of(kOwner, Rank(1, 2)));
  CHECK(ring.Run(1000) < 20);
  CHECK(first.Take().step == 0);
  CHECK(second.Take().step == 0);
}

TEST_CASE("fault 69: a group that was told how long others wait is ended then, whosever it is") {
  const struct {
    SlowPolicy slow;
    uint32_t lag_ms;
    double least_s, most_s;
  } kCases[] = {{SlowPolicy::kBlock, 3000, 2.9, 3.2}, {SlowPolicy::kDetach, 0, 0, 0.1}};
  for (const auto& [slow, lag_ms, least_s, most_s] : kCases) {
    for (const bool before : {false, true}) {
      INFO("policy " << static_cast<int>(slow) << " before " << before);
      Clocked ring;
      ConsumerSpec spec = Of(kOwner, Split(1));
      if (before) {
        spec.group_is_told = true;
        spec.slow = slow;
        spec.lag_ms = lag_ms;
      }
      Attached worker(ring.writer(), spec);
      if (!before) ring.writer()->SetSlowPolicy("workers", slow, lag_ms);
      const double seconds = ring.UntilItGoesOn(100);
      CHECK(seconds >= least_s);
      CHECK(seconds <= most_s);
      CHECK(EndOf(worker).substr(0, 8) == "DETACHED");
    }
  }
}

TEST_CASE("fault 69: a split group that all have left costs nobody a moment") {
  Clocked ring;
  Attached worker(ring.writer(), Of(kOwner, Split(1)));
  ring.Read();
  worker.reader().Release(worker.Take());
  worker.reader().Leave();
  worker.Detach();
  // As long as nobody needs its slots, whoever comes goes on with its next step.
  REQUIRE(ring.writer()->Groups().size() == 1);
  CHECK(ring.writer()->Groups()[0].is_kept);
  CHECK(ring.writer()->Groups()[0].kept_ns == 0);
  CHECK(ring.Read() == Clocked::kMany);
  CHECK(ring.writer()->Groups().empty());
}

TEST_CASE("a split group whose last worker has left goes on with the next one") {
  const auto writer = MakeWriter();
  Attached other(writer.get(), Of(kOwner));
  Attached worker(writer.get(), Of(kOwner, Split(1)));
  Produce(writer.get());
  worker.reader().Release(worker.Take());
  worker.reader().Leave();
  worker.Detach();
  for (int i = 0; i < 2; ++i) other.reader().Release(other.Take());
  Attached next(writer.get(), Of(kOwner, Split(2)));
  CHECK(next.Take().step == 1);
}

TEST_CASE("fault 69: a split group whose worker has died is kept, and others wait for it so long") {
  Clocked ring;
  Attached worker(ring.writer(), Of(kOwner, Split(1)));
  ring.Read();
  CHECK(worker.Take().step == 0);
  worker.Detach();
  ring.Run(5);
  const std::vector<GroupStats> groups = ring.writer()->Groups();
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].is_kept);
  CHECK(groups[0].kept_ns > 4 * kSecondNs);
  CHECK(groups[0].kept_ns < 6 * kSecondNs);
  REQUIRE(ring.writer()->HoldUps().size() == 1);
  CHECK(ring.writer()->HoldUps()[0].consumer == 0);
  CHECK(ring.writer()->HoldUps()[0].most_ns);
  Attached next(ring.writer(), Of(kOwner, Split(2)));
  const Lease again = next.Take();
  CHECK(again.step == 0);
  CHECK(again.redelivered);
  next.Detach();
  CHECK(ring.UntilItGoesOn(100) < 11);
}

TEST_CASE("fault 69: guests that come, take a step and are killed under ever new names") {
  Clocked ring;
  double waited_s = 0;
  for (uint64_t number = 1; number <= 20; ++number) {
    ConsumerSpec spec = Of(kGuest, Split(number));
    spec.group = "e" + std::to_string(number);
    Attached worker(ring.writer(), spec);
    ring.Read();
    worker.reader().Release(worker.Take());
    worker.Detach();
    waited_s += ring.UntilItGoesOn(100);
  }
  CHECK(waited_s < 12);
}

TEST_CASE("fault 69: a group that took nothing is forgotten when its members have gone") {
  for (const bool leaves : {false, true}) {
    const auto writer = MakeWriter();
    Attached worker(writer.get(), Of(kOwner, Split(1))), other(writer.get(), Of(kOwner, Split(2)));
    worker.Detach();
    CHECK(HasGroup(*writer, "workers"));
    if (leaves) other.reader().Leave();
    if (leaves) CHECK(!HasGroup(*writer, "workers"));
    other.Detach();
    CHECK(writer->Groups().empty());
    CHECK(writer->IsDeserted());
  }
}

TEST_CASE("fault 69: guests leave no more split groups behind than a few") {
  const auto writer = MakeWriter();
  for (uint64_t number = 1; number <= 50; ++number) {
    ConsumerSpec spec = Of(kGuest, Split(number));
    spec.group = "e" + std::to_string(number);
    Attached worker(writer.get(), spec);
    Produce(writer.get());
    worker.reader().Release(worker.Take());
    worker.Detach();
  }
  CHECK(writer->Groups().size() <= 8);
}

TEST_CASE("fault 69: a restored split group is the user's who had it, whoever comes back first") {
  for (const bool of_guest : {false, true}) {
    INFO("of a guest " << of_guest);
    Clocked ring;
    const uint32_t uid = of_guest ? kGuest : kOwner;
    SplitState state;
    state.user = {uid, of_guest};
    state.entries = {{0, 1, false, ""}};
    state.next = 1;
    ring.writer()->RestoreSplit("workers", state);
    ring.writer()->EndRestore(std::nullopt);
    ConsumerHandle handle;
    CHECK(ring.writer()->Attach(Of(kOtherGuest, Split(2)), {}, 1, &handle).code ==
          Code::kPermissionDenied);
    REQUIRE(ring.writer()->Groups().size() == 1);
    CHECK(ring.writer()->Groups()[0].uid == uid);
    Attached back(ring.writer(), Of(uid, Split(1)));
    ring.Read();
    const Lease held = back.Take();
    CHECK(held.redelivered);
    // A guest's is waited for ten seconds.
    ring.Run(9);
    CHECK((ring.UntilItGoesOn(60) < 2) == of_guest);
  }
}

TEST_CASE("a split group whose user is not known is the first one's who comes back") {
  const auto writer = MakeWriter();
  SplitState state;
  state.entries = {{0, 1, false, ""}};
  state.next = 1;
  writer->RestoreSplit("workers", state);
  writer->EndRestore(std::nullopt);
  Attached back(writer.get(), Of(kGuest, Split(1)));
  CHECK(writer->Groups()[0].uid == kGuest);
}

TEST_CASE("fault 69: a split group that a guest has left keeps no ring from its rest") {
  for (const uint32_t uid : {kOwner, kGuest}) {
    INFO("user " << uid);
    const auto writer = MakeWriter();
    {
      Attached worker(writer.get(), Of(uid, Split(1)));
      Produce(writer.get());
      worker.Take();
      CHECK_FALSE(writer->IsDeserted());
      worker.Detach();
    }
    CHECK(writer->IsDeserted() == (uid == kGuest));
    CHECK(writer->Groups().size() == 1);
  }
}

TEST_CASE("who skips what it does not take limits nobody") {
  for (const bool holds : {false, true}) {
    INFO("holds " << holds);
    Clocked ring(SmallRing(3, 12));
    Attached skips(ring.writer(), Of(kOwner, Slow(SlowPolicy::kSkip)));
    Lease held = {};
    if (holds) {
      Produce(ring.writer());
      held = skips.Take();
      ring.Run(1);  // its slot has another one in its place
    }
    CHECK(ring.Read() == Clocked::kMany);
    if (holds) {
      CHECK(IsIntact(held));
      skips.reader().Release(held);
    }
    const Lease next = skips.Take();
    CHECK(next.step >= Clocked::kMany - 12);
  }
}

TEST_CASE(
    "who skips loses nothing while a slot is being filled, or others have something to take") {
  const auto writer = MakeWriter(SmallRing(5, 5));
  Attached skips(writer.get(), Of(kOwner, Slow(SlowPolicy::kSkip)));
  Attached other(writer.get(), Of(kOwner));
  Produce(writer.get(), 4);
  const int claimed = writer->TryClaim();
  REQUIRE(claimed >= 0);
  for (int step = 0; step < 4; ++step) other.reader().Release(other.Take());
  CHECK(writer->TryClaim() == -1);
  CHECK(writer->Consumers()[0].skipped == 0);
  FillAndPublish(writer.get(), claimed, 4);
  CHECK(writer->TryClaim() == -1);
  CHECK(writer->Consumers()[0].skipped == 0);
  other.reader().Release(other.Take());
  CHECK(writer->TryClaim() >= 0);
  CHECK(writer->Consumers()[0].skipped == 5);
}

TEST_CASE("fault 69: a guest enters no other user's ranks or split, and takes nobody's name") {
  const auto writer = MakeWriter(SmallRing(9, 20));
  ConsumerHandle handle;
  Attached worker(writer.get(), Of(kOwner, Split(1))), rank(writer.get(), Of(kOwner, Rank(0, 2)));
  Attached theirs(writer.get(), [] {
    ConsumerSpec spec = Of(kOtherGuest, Split(5));
    spec.group = "theirs";
    return spec;
  }());
  ConsumerSpec spec = Of(kGuest, Split(2));
  CHECK(writer->Attach(spec, {}, 1, &handle).code == Code::kPermissionDenied);
  spec.group = "theirs";
  CHECK(writer->Attach(spec, {}, 1, &handle).code == Code::kPermissionDenied);
  CHECK(writer->Attach(Of(kGuest, Rank(1, 2)), {}, 1, &handle).code == Code::kPermissionDenied);
  CHECK(writer->Attach(Of(kOtherGuest, spec), {}, 1, &handle).ok());
  // The owner's groups have the name that they want.
  spec = Of(kOwner, Split(3));
  spec.group = "theirs";
  Attached owners(writer.get(), spec);
  CHECK(EndOf(theirs).substr(0, 8) == "DETACHED");
  Produce(writer.get());
  CHECK(owners.Take().step == 0);
  ConsumerSpec named;
  named.group = "default", named.name = "trainer";
  Attached squats(writer.get(), Of(kGuest, named));
  CHECK(writer->Attach(Of(kOtherGuest, named), {}, 1, &handle).code == Code::kAlreadyExists);
  Attached trainer(writer.get(), Of(kOwner, named));
  CHECK(EndOf(squats).substr(0, 7) == "another");
}

TEST_CASE("fault 69: a group is dropped, whoever is in it") {
  const auto writer = MakeWriter(SmallRing(9, 20));
  CHECK_FALSE(writer->DropGroup("workers", "DETACHED: dropped"));
  Attached stays(writer.get(), Of(kOwner)), worker(writer.get(), Of(kOwner, Split(1)));
  Attached rank(writer.get(), Of(kOwner, Rank(0, 2)));
  Produce(writer.get());
  const Lease held = worker.Take();
  CHECK(writer->DropGroup("workers", "DETACHED: dropped"));
  CHECK(writer->DropGroup("ranks", "DETACHED: dropped"));
  CHECK(EndOf(worker) == "DETACHED: dropped");
  CHECK(EndOf(rank) == "DETACHED: dropped");
  CHECK(writer->Groups().empty());
  for (uint64_t step = 0; step < 50; ++step) {
    stays.reader().Release(stays.Take());
    Produce(writer.get());
  }
  CHECK(IsIntact(held));
  // One that is kept.
  Attached dies(writer.get(), Of(kOwner, Split(2)));
  Produce(writer.get());
  dies.reader().Release(dies.Take());
  dies.Detach();
  REQUIRE(HasGroup(*writer, "workers"));
  CHECK(writer->DropGroup("workers", "DETACHED: dropped"));
  CHECK(writer->Groups().empty());
}

}  // namespace
}  // namespace penstock::ring
