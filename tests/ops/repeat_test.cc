// Passes without elements: a finite repeat goes through all of its passes, an endless one ends with
// the first that has none.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/lone_front.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

// The elements of pass p are numbered from 100 p on.
class Passes final : public MadeUpInput {
 public:
  explicit Passes(std::function<uint64_t(uint64_t pass)> length) : length_(std::move(length)) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (; *pulled < count; ++*pulled) {
      if (next_ == length_(pass_)) return Pulled::kEnd;
      RecordRef element;
      element.offset = 100 * pass_ + next_++;
      out.push_back(element);
    }
    return Pulled::kSome;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    for (; *skipped < count; ++*skipped, ++next_) {
      if (next_ == length_(pass_)) return Pulled::kEnd;
    }
    return Pulled::kSome;
  }
  void Restart(uint64_t pass) override {
    pass_ = pass;
    next_ = 0;
    ++restarts;
    if (on_restart) on_restart(pass);
  }
  std::optional<uint64_t> Count() override { return count; }

  std::optional<uint64_t> count;  // what it says of itself
  uint64_t restarts = 0;
  std::function<void(uint64_t pass)> on_restart;

 private:
  const std::function<uint64_t(uint64_t)> length_;
  uint64_t pass_ = 0;
};

struct Fixture {
  // `repeat`: its options.
  Fixture(const std::string& repeat, std::function<uint64_t(uint64_t pass)> length) {
    auto made = PlanText(Stages("range { stop: 1 } | repeat { " + repeat + " }"));
    REQUIRE(made.ok());
    plan = *std::move(made);
    auto input = std::make_unique<Passes>(std::move(length));
    passes = input.get();
    op = MakeLastOp(*plan, front.context, std::move(input));
  }

  LoneFront front;
  std::shared_ptr<const Plan> plan;
  Passes* passes = nullptr;
  std::unique_ptr<OrderOp> op;
};

// Passes 1 and 4 of six have elements.
uint64_t SomeOfSix(uint64_t pass) { return pass == 1 ? 2 : pass == 4 ? 1 : 0; }

TEST_CASE("repeat: a finite one goes on behind passes without elements") {
  Fixture test("count: 6", SomeOfSix);
  RecordList out;
  uint64_t pulled = 0;
  CHECK(test.op->Pull(10, out, &pulled) == Pulled::kEnd);
  REQUIRE(pulled == 3);
  CHECK(out[0].offset == 100);
  CHECK(out[1].offset == 101);
  CHECK(out[2].offset == 400);
  CHECK(out[0].epoch == 1);
  CHECK(out[2].epoch == 4);
  CHECK(test.op->pass() == 6);
  CHECK(PullAll(test.front, *test.op).empty());

  const std::vector<uint64_t> all = {100, 101, 400};
  for (uint64_t taken = 0; taken <= all.size(); ++taken) {
    CAPTURE(taken);
    const std::vector<uint64_t> tail(all.begin() + static_cast<int64_t>(taken), all.end());
    Fixture before("count: 6", SomeOfSix);
    Pulled result;
    PullOffsets(before.front, *before.op, taken, &result);
    REQUIRE(result == Pulled::kSome);
    Position position;
    before.op->Save(position);
    Fixture behind("count: 6", SomeOfSix);
    REQUIRE(behind.op->Restore(position).ok());
    CHECK(position.complete());
    CHECK(PullAll(behind.front, *behind.op) == tail);

    Fixture skipping("count: 6", SomeOfSix);
    uint64_t skipped = 0;
    CHECK(skipping.op->Skip(taken, &skipped) == Pulled::kSome);
    CHECK(skipped == taken);
    CHECK(PullAll(skipping.front, *skipping.op) == tail);
  }
}

TEST_CASE("repeat: an endless one ends with a pass without elements") {
  Fixture none("", SomeOfSix);
  CHECK(PullAll(none.front, *none.op).empty());
  Fixture some("", [](uint64_t pass) { return pass == 2 ? 0 : 1; });
  CHECK(PullAll(some.front, *some.op) == std::vector<uint64_t>{0, 100});
  CHECK(PullAll(some.front, *some.op).empty());
  CHECK(some.op->pass() == 2);
}

TEST_CASE("repeat: what is known to be empty is not gone through") {
  Fixture test("count: 4611686018427387904", [](uint64_t) { return 0; });
  test.passes->count = 0;
  CHECK(PullAll(test.front, *test.op).empty());
  uint64_t skipped = 0;
  CHECK(test.op->Skip(5, &skipped) == Pulled::kEnd);
  CHECK(skipped == 0);
  CHECK(test.passes->restarts == 0);
}

TEST_CASE("repeat: passes without elements can be interrupted, and are gone on with") {
  const auto length = [](uint64_t pass) { return pass == 5000 ? 2 : 0; };
  for (const bool skips : {false, true}) {
    CAPTURE(skips);
    Fixture test("count: 4611686018427387904", length);
    test.passes->on_restart = [&](uint64_t pass) {
      if (pass % 1000 == 0) test.front.waiting = 1;
    };
    RecordList out;
    uint64_t done = 0;
    int interrupted = 0;
    Pulled result;
    do {
      test.front.waiting = 0;
      result = skips ? test.op->Skip(1, &done) : test.op->Pull(1, out, &done);
      if (result != Pulled::kBlocked) continue;
      ++interrupted;
      CHECK(test.op->pass() == 1000 * static_cast<uint64_t>(interrupted));
      REQUIRE(interrupted <= 5);
    } while (result == Pulled::kBlocked);
    CHECK(result == Pulled::kSome);
    CHECK(interrupted == 5);
    CHECK(PullOffsets(test.front, *test.op, 1, &result) == std::vector<uint64_t>{500'001});
    CHECK(test.op->pass() == 5000);
  }
}

TEST_CASE("repeat: a pipeline whose first pass has no elements gives those of the others") {
  const std::string shuffled = "range { stop: 8 } | shuffle { buffer_size: 8 seed: 3 } | ";
  const std::vector<int64_t> orders =
      Int64s(RunText(Stages(shuffled + "repeat { count: 30 } | batch { batch_size: 8 }")));
  REQUIRE(orders.size() == 30 * 8);
  // A pass ends where the number comes that the first one begins with.
  const int64_t first = orders[0];
  std::vector<int64_t> expected;
  for (auto pass = orders.begin(); pass != orders.end(); pass += 8)
    expected.insert(expected.end(), pass, std::find(pass, pass + 8, first));
  REQUIRE_FALSE(expected.empty());
  const std::string cut =
      absl::StrCat(shuffled, "take_while { predicate: 'value != ", first, "' } | ");
  const auto plan = PlanText(Stages(cut + "repeat { count: 30 } | batch { batch_size: 1 }"));
  REQUIRE(plan.ok());
  const RunResult all = RunPlan(*plan);
  CHECK(all.finished);
  CHECK(all.status.ok());
  CHECK(Int64s(all) == expected);
  for (size_t step = 0; step < all.batches.size(); step += 5) {
    INFO("behind step " << step);
    const RunResult tail = RunPlan(*plan, {.workers = static_cast<int>(1 + step % 3),
                                           .cursor = all.batches[step].info.cursor});
    CHECK(Int64s(tail) ==
          std::vector<int64_t>(expected.begin() + static_cast<int64_t>(step) + 1, expected.end()));
  }
  const RunResult endless = RunText(Stages(cut + "repeat {} | batch { batch_size: 1 }"));
  CHECK(endless.finished);
  CHECK(endless.batches.empty());
}

TEST_CASE("repeat: one of nothing can be stopped, and one that is known for it ends") {
  const std::string repeat = "repeat { count: 4611686018427387904 }";
  const RunResult stopped = RunText(
      Stages("concatenate { (| range { stop: 5 } |) (| range { stop: 2 } | filter { predicate: "
             "'value < 0' } | " +
             repeat + " |) }"),
      {.max_steps = 5});
  CHECK(stopped.batches.size() == 5);
  CHECK_FALSE(stopped.finished);
  for (const char* const nothing :
       {"range { stop: 0 } | ", "range { stop: 5 } | skip { count: 5 } | "}) {
    INFO(nothing);
    const RunResult ended = RunText(Stages(nothing + repeat + " | batch { batch_size: 2 }"));
    CHECK(ended.finished);
    CHECK(ended.batches.empty());
  }
}

}  // namespace
}  // namespace penstock::test
