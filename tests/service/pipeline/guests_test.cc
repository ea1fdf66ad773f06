// What a user who may only attach does to somebody else's pipeline: nothing that moves its stream,
// or its changes.
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "tests/service/owned_pipeline.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::kGuest;
using test::kOwner;
using test::Owned;

RequestedChange Skip() {
  RequestedChange requested;
  requested.change.set_skip_steps(3);
  return requested;
}

TEST_CASE("fault 69: a guest that is alone at a later step moves nobody but itself") {
  Owned pipeline;
  const auto guest = pipeline->Attach(pipeline.At(kGuest, 50));
  INFO(guest.status().ToString());
  REQUIRE(guest.ok());
  CHECK(guest->handle.start_step == 50);
  CHECK(guest->is_replay);
  pipeline.Wait();
  CHECK_FALSE(guest->stream->writer().Consumers().at(0).detached);
  CHECK(pipeline.WhereItIsLeft() == 0);
  // Other numbers make no others of its steps.
  RequestedChange workers;
  workers.change.set_workers(2);
  REQUIRE(pipeline->Update(workers).ok());
  CHECK_FALSE(guest->stream->writer().Consumers().at(0).evicted);
  // Nor does it put off what the owner changes; its own steps would be others then.
  std::string notice;
  const auto change = pipeline->Update(Skip(), &notice);
  REQUIRE(change.ok());
  CHECK(change->step() < 20);
  CHECK(notice.empty());
  CHECK(guest->stream->writer().Consumers().at(0).evicted);
  const auto again = pipeline->Attach(pipeline.At(kGuest, 50));
  CHECK(absl::StrContains(again.status().message(), "another history"));
}

TEST_CASE("who is no guest takes a stream that nobody reads to where it is") {
  Owned pipeline;
  const auto owner = pipeline->Attach(pipeline.At(kOwner, 50));
  REQUIRE(owner.ok());
  CHECK_FALSE(owner->is_replay);
  owner->stream->writer().Detach(owner->handle.id);
  CHECK(pipeline.WhereItIsLeft() == 50);
  // A guest that is behind takes it nowhere.
  const auto guest = pipeline->Attach(pipeline.At(kGuest, 2));
  INFO(guest.status().ToString());
  REQUIRE(guest.ok());
  CHECK(guest->handle.start_step == 2);
  pipeline.Wait();
  CHECK_FALSE(guest->stream->writer().Consumers().at(0).detached);
  CHECK(pipeline.WhereItIsLeft() == 50);
}

TEST_CASE("no guest goes where a change waits, that may be in front of it") {
  Owned pipeline;
  RequestedChange requested;
  requested.at_next_epoch = true;
  *requested.change.mutable_stage() = pipeline->LastSpec().stage();
  requested.change.mutable_stage(2)->mutable_batch()->set_batch_size(2);
  REQUIRE(pipeline->Update(requested).ok());
  const auto guest = pipeline->Attach(pipeline.At(kGuest, 50));
  CHECK(absl::IsFailedPrecondition(guest.status()));
}

TEST_CASE("after a restart a guest's position counts where no other user came back") {
  SECTION("beside the owner's") {
    Owned pipeline(/*first_free=*/60, /*returns=*/true);
    const auto back = pipeline->StartAgain({pipeline.At(kGuest, 50), pipeline.At(kOwner, 2)});
    REQUIRE(back[0].ok());
    REQUIRE(back[1].ok());
    CHECK(back[0]->handle.start_step == 50);
    CHECK(back[0]->is_replay);
    CHECK_FALSE(back[1]->is_replay);
    CHECK(back[1]->stream->first_step() == 2);
  }
  SECTION("alone") {
    Owned pipeline(/*first_free=*/60, /*returns=*/true);
    const auto back = pipeline->StartAgain({pipeline.At(kGuest, 50)});
    REQUIRE(back[0].ok());
    CHECK_FALSE(back[0]->is_replay);
    CHECK(back[0]->stream->first_step() == 50);
  }
  SECTION("where nobody can have been") {
    Owned pipeline(/*first_free=*/10, /*returns=*/true);
    const auto back = pipeline->StartAgain({pipeline.At(kGuest, 50)});
    REQUIRE(back[0].ok());
    CHECK(back[0]->is_replay);
    CHECK(back[0]->stream->is_apart());
    CHECK(pipeline.WhereItIsLeft() == 0);
  }
}

TEST_CASE("fault 69: a pipeline rests though a guest has left a split group") {
  for (const bool of_guest : {false, true}) {
    INFO("of a guest " << of_guest);
    Owned pipeline;
    auto owner = pipeline->Attach(Owned::Anywhere(kOwner));
    REQUIRE(owner.ok());
    ring::SplitState state;
    state.user = {of_guest ? kGuest : kOwner, of_guest};
    state.entries = {{0, 1, false, ""}};
    state.next = 1;
    owner->stream->writer().RestoreSplit("workers", state);
    owner->stream->writer().Detach(owner->handle.id);
    owner->stream.reset();
    pipeline->Rest();
    CHECK(pipeline->Stats().resting() == of_guest);
    // It does not come back with the stream.
    CHECK(pipeline.WhereItIsLeft() == 0);
    CHECK(pipeline->Groups().groups_size() == (of_guest ? 0 : 1));
  }
}

}  // namespace
}  // namespace penstock
