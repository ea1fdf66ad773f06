// The streams of a pipeline whose spec nobody changes and whose consumers nobody counts: begun,
// moved, at rest, drained and closed.
#include "server/service/pipeline/pipeline_streams.h"

#include <future>
#include <memory>

#include "absl/status/status.h"
#include "server/service/pipeline/pipeline_drain.h"
#include "tests/service/counting.h"
#include "tests/service/pipeline_parts.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::Parts;
using test::Until;

// A pipeline whose shared stream has published something.
struct Running : Parts {
  Running() : Parts("workers: 1") {
    const auto lock = streams.Lock();
    const auto stream = streams.Make("", numbers.slots(), basis.options.owner);
    REQUIRE(stream.ok());
    CHECK(streams.shared() == nullptr);
    REQUIRE(streams.Begin(*stream).ok());
    Until([&] { return (*stream)->writer().published() > 0; });
  }
};

TEST_CASE("a stream that is moved to an impossible position goes on where it was") {
  Running parts;
  const auto lock = parts.streams.Lock();
  const auto before = parts.streams.shared();
  const absl::Status refused = parts.streams.Restart("no cursor");
  CHECK_FALSE(refused.ok());
  const auto after = parts.streams.shared();
  REQUIRE(after != nullptr);
  CHECK(after != before);
  CHECK(after->ordinal() > before->ordinal());
  CHECK_FALSE(parts.streams.outcome());
}

TEST_CASE("what rests has no stream, and goes on at the same step") {
  Running parts;
  // Its position cannot be found again at once, which Rest() leaves to whoever asks.
  CHECK_FALSE(parts.streams.MayRest(5, 10));
  CHECK_FALSE(parts.streams.MayRest(15, 10));
  parts.streams.Rest();
  REQUIRE(parts.streams.standing().resting);
  CHECK(parts.streams.shared() == nullptr);
  CHECK(parts.streams.All().empty());
  CHECK_FALSE(parts.streams.outcome());
  const auto lock = parts.streams.Lock();
  REQUIRE(parts.streams.EndRest().ok());
  CHECK_FALSE(parts.streams.standing().resting);
  REQUIRE(parts.streams.shared() != nullptr);
  // There is nothing to end any more.
  const auto stream = parts.streams.shared();
  REQUIRE(parts.streams.EndRest().ok());
  CHECK(parts.streams.shared() == stream);
}

TEST_CASE("who makes streams keeps others from it, and from nothing else") {
  Running parts;
  const auto lock = parts.streams.Lock();
  const auto try_lock = [&] { return parts.streams.TryLock().owns_lock(); };
  CHECK_FALSE(std::async(std::launch::async, try_lock).get());
  CHECK(parts.streams.All().size() == 1);
  parts.streams.Tick(1, 1);
  CHECK_FALSE(parts.streams.MayBeginLater());
  parts.streams.Close(absl::CancelledError("closed"));
  CHECK(parts.streams.standing().closed);
}

TEST_CASE(
    "small streams are forgotten when their consumers have gone, and none begins after the end") {
  Running parts;
  auto lock = parts.streams.Lock();
  auto replay = *parts.streams.Make("", 3, parts.basis.options.owner, PipelineStreams::For::kOne);
  REQUIRE(parts.streams.AddReplay(replay, ring::ConsumerSpec()).ok());
  CHECK(parts.streams.Replays().size() == 1);
  CHECK(parts.streams.All().size() == 2);
  CHECK(parts.streams.All().front() == parts.streams.shared());
  replay.reset();
  CHECK(parts.streams.Replays().empty());
  replay = *parts.streams.Make("", 3, parts.basis.options.owner, PipelineStreams::For::kOne);
  parts.streams.Close(absl::CancelledError("closed"));
  CHECK(absl::IsNotFound(parts.streams.AddReplay(replay, ring::ConsumerSpec())));
}

TEST_CASE(
    "a stream that could not start is told, and may begin later where memory was too little") {
  Running parts;
  const auto lock = parts.streams.Lock();
  const auto stream = parts.streams.shared();
  parts.streams.GiveUp(absl::ResourceExhaustedError("no threads"));
  CHECK(parts.streams.MayBeginLater());
  CHECK(absl::IsResourceExhausted(*parts.streams.outcome()));
  parts.streams.GiveUp(absl::InternalError("broken"));
  CHECK_FALSE(parts.streams.MayBeginLater());
  stream->Stop(absl::CancelledError("the end"));
}

TEST_CASE("what nobody reads is drained at once, and what is closed never") {
  Running parts;
  const auto never = [] { return false; };
  const auto drained = WaitUntilTaken("p", parts.streams, absl::Hours(1), never);
  REQUIRE(drained.ok());
  CHECK(drained->step == 0);

  ring::ConsumerHandle handle;
  REQUIRE(parts.streams.shared()->writer().Attach({}, {}, 1, &handle).ok());
  (void)parts.streams.shared()->Hold();
  const auto late = WaitUntilTaken("p", parts.streams, absl::ZeroDuration(), never);
  CHECK(absl::IsDeadlineExceeded(late.status()));
  const auto gone = WaitUntilTaken("p", parts.streams, absl::Hours(1), [] { return true; });
  CHECK(absl::IsCancelled(gone.status()));
  parts.streams.Close(absl::CancelledError("closed"));
  const auto closed = WaitUntilTaken("p", parts.streams, absl::Hours(1), never);
  CHECK(absl::IsUnavailable(closed.status()));
}

}  // namespace
}  // namespace penstock
