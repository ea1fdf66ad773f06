// Order ops by themselves: the test pulls from them, gives them their input, and interrupts them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/file.h"
#include "server/engine/compute/stage_clock.h"
#include "server/engine/order/order_op.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/section/section_op.h"
#include "server/engine/section/sections_ahead.h"
#include "tests/support/catch.h"

namespace penstock::test {

// An input that a test makes up: it tells its position by one number, has one reference an element,
// and never fails by itself. Pull() and Count() are the test's, and Skip() where it is asked for.
class MadeUpInput : public OrderOp {
 public:
  Pulled Skip(uint64_t, uint64_t*) override { return Pulled::kFailed; }
  void Restart(uint64_t) override { next_ = 0; }
  void Save(Position& position) const override { position.Add(next_); }
  absl::Status Restore(Position& position) override {
    next_ = position.Take();
    return absl::OkStatus();
  }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return absl::OkStatus(); }

 protected:
  uint64_t next_ = 0;  // of this pass
};

// What the ops of one front share. They must be gone before it is.
struct LoneFront {
  explicit LoneFront(Manifest files_of_sources = {}) : manifest(std::move(files_of_sources)) {
    context.waiting = &waiting;
  }

  const Manifest manifest;
  FileTable files{LocalFileSystem(), manifest};
  RecordStore store;
  ReadQueue reads;
  SectionQueue sections;
  DamageLog damage;
  std::atomic<bool> cancelled{false};
  std::atomic<int> waiting{0};  // above 0 the front is interrupted
  SectionsAhead ahead;
  StageClock stages{8};
  StageClock* clock = &stages;
  FrontContext context{files, store, reads, sections, damage, cancelled, ahead, clock};
};

// The order op that the plan ends with, over another input than the plan's.
inline std::unique_ptr<OrderOp> MakeLastOp(const Plan& plan, FrontContext& context,
                                           std::unique_ptr<OrderOp> input) {
  OrderInputs inputs;
  inputs.push_back(std::move(input));
  return static_cast<const PlanImpl&>(plan).order().make(context, std::move(inputs));
}

// The offsets of up to `count` elements of one reference each. Where the op is interrupted, it is
// gone on with.
inline std::vector<uint64_t> PullOffsets(LoneFront& front, OrderOp& op, uint64_t count,
                                         Pulled* result) {
  RecordList out;
  uint64_t pulled = 0;
  int calls = 0;
  do {
    front.waiting = 0;
    *result = op.Pull(count, out, &pulled);
    ++calls;
    REQUIRE(calls < 10'000);
  } while (*result == Pulled::kBlocked);
  std::vector<uint64_t> offsets;
  for (const RecordRef& element : out) offsets.push_back(element.offset);
  return offsets;
}

// The same of all that are left of the pass.
inline std::vector<uint64_t> PullAll(LoneFront& front, OrderOp& op) {
  Pulled result;
  std::vector<uint64_t> offsets = PullOffsets(front, op, 1'000'000, &result);
  INFO(op.status().ToString());
  REQUIRE(result == Pulled::kEnd);
  return offsets;
}

}  // namespace penstock::test
