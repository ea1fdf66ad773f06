// A batch that is not whole yet while its input is blocked: whoever pulls has nothing of it.
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

TEST_CASE("a batch that waits for more is nobody's, until it is whole or the pass is over") {
  const struct {
    const char* spec;
    std::vector<uint64_t> elements;
  } cases[] = {
      {"batch { batch_size: 4 drop_remainder: true }", {}},
      {"batch { batch_size: 4 }", {0, 1, 2}},
      {"batch { batch_size: 4 remainder: WRAP }", {0, 1, 2, 0}},
      {"batch { batch_size: 3 drop_remainder: true }", {0, 1, 2}},
      {"batch { batch_size: 1 } | rebatch { batch_size: 4 batch_size: 5 drop_remainder: true }",
       {}},
      {"batch { batch_size: 1 } | rebatch { batch_size: 4 batch_size: 5 }", {0, 1, 2}},
  };
  for (const auto& c : cases) {
    INFO(c.spec);
    const auto plan = PlanText(Stages(std::string("range { stop: 1 } | ") + c.spec));
    INFO(plan.status().ToString());
    REQUIRE(plan.ok());
    for (const bool begins_anew : {false, true}) {
      CAPTURE(begins_anew);
      LoneFront front;
      const auto op = MakeLastOp(**plan, front.context, std::make_unique<Halting>());
      // What was there before stays.
      RecordList out(1);
      out[0].offset = 77;
      uint64_t pulled = 0;
      REQUIRE(op->Pull(1, out, &pulled) == Pulled::kBlocked);
      CHECK(pulled == 0);
      CHECK(out.size() == 1);
      if (begins_anew) op->Restart(1);
      const bool gives = !c.elements.empty();
      CHECK(op->Pull(1, out, &pulled) == (gives ? Pulled::kSome : Pulled::kEnd));
      CHECK(pulled == (gives ? 1 : 0));
      std::vector<uint64_t> offsets;
      for (const RecordRef& element : out) offsets.push_back(element.offset);
      std::vector<uint64_t> expected = c.elements;
      expected.insert(expected.begin(), 77);
      CHECK(offsets == expected);
    }
  }
}

}  // namespace
}  // namespace penstock::test
