#include "server/engine/keep/kept_order.h"

#include <memory>
#include <optional>

#include "server/engine/tasks/away_tasks.h"
#include "server/engine/tasks/errands.h"
#include "server/engine/tasks/event.h"
#include "tests/support/catch.h"
#include "tests/support/lone_front.h"

namespace penstock::test {
namespace {

// An input of which nobody knows how long it is.
class UncountedInput final : public MadeUpInput {
 public:
  Pulled Pull(uint64_t, RecordList&, uint64_t*) override { return Pulled::kEnd; }
  std::optional<uint64_t> Count() override { return std::nullopt; }
};

// Knows what is kept once the test says so.
class LateKept final : public KeptElements {
 public:
  explicit LateKept(const bool& is_known) : is_known_(is_known) {}
  bool BeginPass() override { return is_known_; }
  bool Has(uint64_t) const override {
    CHECK(is_known_);
    return false;
  }
  Pulled Deal(uint64_t, RecordList&) override { return Pulled::kEnd; }
  void Keep(uint64_t, const RecordRef&) override {}
  std::optional<uint64_t> Count() const override {
    CHECK(is_known_);
    return 7;
  }

 private:
  const bool& is_known_;
};

TEST_CASE("how many are kept is not unknown while it is looked for: who decides by it waits") {
  LoneFront front;
  Event work;
  AwayTasks away(work, 1);
  Errands errands(away);
  front.context.errands = &errands;
  bool is_known = false;
  const auto op = MakeKeptOrder(front.context, std::make_unique<LateKept>(is_known),
                                std::make_unique<UncountedInput>());
  std::optional<uint64_t> count;
  CHECK(!CountNow(*op, front.context, &count));
  CHECK(!count);
  RecordList out;
  uint64_t moved = 0;
  CHECK(op->Pull(1, out, &moved) == Pulled::kBlocked);
  CHECK(op->Skip(1, &moved) == Pulled::kBlocked);
  is_known = true;
  CHECK(CountNow(*op, front.context, &count));
  CHECK(count == 7);
}

}  // namespace
}  // namespace penstock::test
