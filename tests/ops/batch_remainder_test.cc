// The last rows of a pass, which make no whole batch and are dropped, where the front was interrupted between them and their caller
// has let go of what it had.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/lone_front.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

// Three elements, interrupted in front of the third.
class Halting final : public MadeUpInput {
 public:
  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (; *pulled < count; ++*pulled) {
      if (next_ == 3) return Pulled::kEnd;
      if (next_ == 2 && !std::exchange(halted_, true)) return Pulled::kBlocked;
      RecordRef element;
      element.offset = next_++;
      out.push_back(element);
    }
    return Pulled::kSome;
  }
  std::optional<uint64_t> Count() override { return 3; }

 private:
  bool halted_ = false;
};

TEST_CASE("a remainder is dropped, though a part of it was let go of before") {
  for (const char* const spec :
       {"range { stop: 1 } | batch { batch_size: 4 drop_remainder: true }",
        "range { stop: 1 } | batch { batch_size: 1 } | rebatch { batch_size: 4 batch_size: 5 "
        "drop_remainder: true }"}) {
    INFO(spec);
    for (const bool lets_go : {false, true}) {
      CAPTURE(lets_go);
      const auto plan = PlanText(Stages(spec));
      INFO(plan.status().ToString());
      REQUIRE(plan.ok());
      LoneFront front;
      const auto op = MakeLastOp(**plan, front.context, std::make_unique<Halting>());
      RecordList out;
      uint64_t pulled = 0;
      REQUIRE(op->Pull(1, out, &pulled) == Pulled::kBlocked);
      CHECK(out.size() == 2);
      if (lets_go) out.clear();
      CHECK(op->Pull(1, out, &pulled) == Pulled::kEnd);
      CHECK(pulled == 0);
      CHECK(out.empty());
    }
  }
}

}  // namespace
}  // namespace penstock::test
