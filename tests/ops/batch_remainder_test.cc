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
class Halting final : public OrderOp {
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
  Pulled Skip(uint64_t, uint64_t*) override { return Pulled::kFailed; }
  void Restart(uint64_t) override { next_ = 0; }
  void Save(Position& position) const override { position.Add(next_); }
  absl::Status Restore(Position& position) override {
    next_ = position.Take();
    return absl::OkStatus();
  }
  std::optional<uint64_t> Count() override { return 3; }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  uint64_t next_ = 0;
  bool halted_ = false;
};

TEST_CASE("a remainder is dropped, though a part of it was let go of before") {
  for (const char* const batch : {"batch { batch_size: 4 drop_remainder: true }",
                                  "rebatch { batch_size: 4 batch_size: 5 drop_remainder: true }"}) {
    INFO(batch);
    for (const bool lets_go : {false, true}) {
      CAPTURE(lets_go);
      auto plan =
          PlanText(Stages(std::string("range { stop: 1 } | batch { batch_size: 1 } | ") + batch));
      if (!plan.ok()) plan = PlanText(Stages(std::string("range { stop: 1 } | ") + batch));
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
