// A shuffle on its way to a position, over an input that comes bit by bit.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/lone_front.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

constexpr uint64_t kNumbers = 100;

// Numbers, of which few are there at a time; how many there are becomes known on the way, as that
// of a cache which becomes whole.
class Arriving final : public MadeUpInput {
 public:
  explicit Arriving(uint64_t known_from) : known_from_(known_from) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (int arrived = 0; *pulled < count; ++*pulled, ++arrived) {
      if (next_ == kNumbers) return Pulled::kEnd;
      if (arrived == 3) return Pulled::kBlocked;
      RecordRef number;
      number.offset = next_++;
      out.push_back(number);
    }
    return Pulled::kSome;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    const uint64_t left_out = std::min(count - *skipped, kNumbers - next_);
    next_ += left_out;
    *skipped += left_out;
    return *skipped == count ? Pulled::kSome : Pulled::kEnd;
  }
  std::optional<uint64_t> Count() override {
    return next_ >= known_from_ ? std::optional<uint64_t>(kNumbers) : std::nullopt;
  }

 private:
  const uint64_t known_from_;
};

struct Fixture {
  Fixture(uint64_t buffer_size, uint64_t known_from) {
    auto made = PlanText(Stages("range { stop: 1 } | shuffle { buffer_size: " +
                                std::to_string(buffer_size) + " seed: 3 }"));
    REQUIRE(made.ok());
    plan = *std::move(made);
    op = MakeLastOp(*plan, front.context, std::make_unique<Arriving>(known_from));
  }

  LoneFront front;
  std::shared_ptr<const Plan> plan;
  std::unique_ptr<OrderOp> op;
};

TEST_CASE("shuffle: a cursor goes on, whenever the length of the input becomes known") {
  for (const uint64_t buffer_size : {1, 7, 50, 200}) {
    CAPTURE(buffer_size);
    Fixture whole(buffer_size, UINT64_MAX);
    const std::vector<uint64_t> all = PullAll(whole.front, *whole.op);
    REQUIRE(all.size() == kNumbers);
    for (const uint64_t known_from : {0, 1, 11, 60, 100}) {
      CAPTURE(known_from);
      for (const uint64_t taken : {0, 1, 8, 40, 93, 99, 100}) {
        CAPTURE(taken);
        Fixture restored(buffer_size, known_from);
        Position position({0, taken});
        REQUIRE(restored.op->Restore(position).ok());
        CHECK(PullAll(restored.front, *restored.op) ==
              std::vector<uint64_t>(all.begin() + static_cast<int64_t>(taken), all.end()));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::test
