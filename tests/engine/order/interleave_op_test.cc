// An interleave on its way to a position: whenever it is interrupted, no element of the input is
// left out.
#include "server/engine/order/interleave_op.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/support/lone_front.h"

namespace penstock::test {
namespace {

constexpr uint64_t kFiles = 4;
constexpr uint64_t kElements = 3;  // of each

// One reference to each file.
class Files final : public MadeUpInput {
 public:
  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (; *pulled < count; ++*pulled) {
      if (next_ == kFiles) return Pulled::kEnd;
      RecordRef file;
      file.file = static_cast<uint32_t>(next_++);
      out.push_back(file);
    }
    return Pulled::kSome;
  }
  std::optional<uint64_t> Count() override { return kFiles; }
};

// The elements of one file, numbered from ten times its own number on. Whoever asks how many there
// are learns nothing, and is interrupted.
class Elements final : public MadeUpInput {
 public:
  Elements(FrontContext& context, std::atomic<int>& waiting)
      : context_(context), waiting_(waiting) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (; *pulled < count; ++*pulled) {
      if (next_ == kElements) return Pulled::kEnd;
      RecordRef element;
      element.offset = uint64_t{10} * context_.element_file + next_++;
      out.push_back(element);
    }
    return Pulled::kSome;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    for (; *skipped < count; ++*skipped, ++next_) {
      if (next_ == kElements) return Pulled::kEnd;
    }
    return Pulled::kSome;
  }
  std::optional<uint64_t> Count() override {
    waiting_ = 1;
    return std::nullopt;
  }

 private:
  FrontContext& context_;
  std::atomic<int>& waiting_;
};

struct Fixture {
  explicit Fixture(uint32_t cycle_length) {
    nested.make = [this](FrontContext& context, OrderInputs) {
      return std::make_unique<Elements>(context, front.waiting);
    };
    OrderInputs inputs;
    inputs.push_back(std::make_unique<Files>());
    op = InterleaveOrder(nested, /*width=*/1, cycle_length, /*block_length=*/1)(front.context,
                                                                                std::move(inputs));
  }

  LoneFront front;
  OrderNode nested;
  std::unique_ptr<OrderOp> op;
};

TEST_CASE("interleave: interrupted in front of the first file, it leaves none out") {
  for (const uint32_t cycle_length : {1, 2, 3}) {
    CAPTURE(cycle_length);
    Fixture whole(cycle_length);
    const std::vector<uint64_t> all = PullAll(whole.front, *whole.op);
    REQUIRE(all.size() == kFiles * kElements);
    for (uint64_t left_out = 1; left_out <= all.size(); ++left_out) {
      CAPTURE(left_out);
      const std::vector<uint64_t> tail(all.begin() + static_cast<int64_t>(left_out), all.end());
      Fixture restored(cycle_length);
      Position position({0, left_out});
      REQUIRE(restored.op->Restore(position).ok());
      // The first call gets no further than to the first file.
      RecordList out;
      uint64_t pulled = 0;
      REQUIRE(restored.op->Pull(1, out, &pulled) == Pulled::kBlocked);
      REQUIRE(pulled == 0);
      CHECK(PullAll(restored.front, *restored.op) == tail);

      Fixture skipping(cycle_length);
      uint64_t skipped = 0;
      REQUIRE(skipping.op->Skip(left_out, &skipped) == Pulled::kBlocked);
      skipping.front.waiting = 0;
      REQUIRE(skipping.op->Skip(left_out, &skipped) == Pulled::kSome);
      CHECK(skipped == left_out);
      CHECK(PullAll(skipping.front, *skipping.op) == tail);
    }
  }
}

}  // namespace
}  // namespace penstock::test
