#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

// One element of each input, side by side. An input is never asked for more than the others have
// given, so that between two pulls nothing waits here but for a pull that is blocked: its position
// is its inputs', or that one of them has ended. From then on none is asked: how far the others
// were pulled in vain, and whether that found damage, is a matter of who asked for how much.
class ZipOp final : public OrderOp {
 public:
  ZipOp(FrontContext& context, OrderInputs inputs) : context_(context) {
    for (std::unique_ptr<OrderOp>& input : inputs) {
      width_ += input->width();
      lanes_.push_back({std::move(input), {}, 0});
    }
  }

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (ended_) return Pulled::kEnd;
    if (failed_ != nullptr) return Pulled::kFailed;
    const uint64_t wanted = count - *pulled;
    uint64_t complete = wanted;
    Pulled result = Pulled::kSome;
    OrderOp* failed = nullptr;
    bool blocked = false;
    // The shortest input says how it goes on. That one before it fails behind that place is
    // nobody's concern.
    for (Lane& lane : lanes_) {
      if (lane.num_waiting >= complete) continue;
      const Pulled of_lane = lane.op->Pull(complete, lane.waiting, &lane.num_waiting);
      if (of_lane == Pulled::kSome) continue;
      complete = lane.num_waiting;
      if (of_lane == Pulled::kBlocked) {
        blocked = true;
        continue;
      }
      result = of_lane;
      failed = of_lane == Pulled::kFailed ? lane.op.get() : nullptr;
    }
    // Who is blocked is asked once more before it is the end.
    failed_ = blocked ? nullptr : failed;
    for (uint64_t i = 0; i < complete; ++i) {
      for (Lane& lane : lanes_) {
        const RecordRef* element = &lane.waiting[i * lane.op->width()];
        out.insert(out.end(), element, element + lane.op->width());
      }
    }
    for (Lane& lane : lanes_) {
      const size_t taken = complete * lane.op->width();
      if (blocked) {
        lane.waiting.erase(lane.waiting.begin(), lane.waiting.begin() + taken);
        lane.num_waiting -= complete;
        continue;
      }
      // What has no partner is left over at the end.
      context_.store.Release(absl::MakeConstSpan(lane.waiting).subspan(taken));
      lane.waiting.clear();
      lane.num_waiting = 0;
    }
    *pulled += complete;
    ended_ = !blocked && result == Pulled::kEnd;
    return blocked ? Pulled::kBlocked : result;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    return SkipByPulling(*this, context_, count, skipped);
  }

  void Restart(uint64_t epoch) override {
    ended_ = false;
    failed_ = nullptr;
    for (Lane& lane : lanes_) {
      context_.store.Release(lane.waiting);
      lane.waiting.clear();
      lane.num_waiting = 0;
      lane.op->Restart(epoch);
    }
  }
  void Save(Position& position) const override {
    position.Add(ended_);
    if (ended_) return;
    for (const Lane& lane : lanes_) lane.op->Save(position);
  }
  absl::Status Restore(Position& position) override {
    ended_ = position.Take() != 0;
    if (ended_) return absl::OkStatus();
    for (Lane& lane : lanes_) {
      if (absl::Status status = lane.op->Restore(position); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  std::optional<uint64_t> Count() override {
    std::optional<uint64_t> least;
    for (Lane& lane : lanes_) {
      const std::optional<uint64_t> count = lane.op->Count();
      if (!count) return std::nullopt;
      least = std::min(least.value_or(*count), *count);
    }
    return least;
  }
  uint32_t width() const override { return width_; }
  absl::Status status() const override {
    return failed_ != nullptr ? failed_->status() : absl::OkStatus();
  }

 private:
  struct Lane {
    std::unique_ptr<OrderOp> op;
    RecordList waiting;
    uint64_t num_waiting = 0;
  };

  FrontContext& context_;
  std::vector<Lane> lanes_;
  uint32_t width_ = 0;
  bool ended_ = false;
  OrderOp* failed_ = nullptr;
};

absl::Status PlanZip(const v1::Zip& options, PlanBuilder& plan) {
  absl::StatusOr<std::vector<Dataset>> inputs = plan.BuildInputs(options.input());
  if (!inputs.ok()) return inputs.status();
  if (inputs->size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at least two inputs, found ", inputs->size()));
  }
  plan.SetTuple(*std::move(inputs), [](FrontContext& context, OrderInputs inputs) {
    return std::make_unique<ZipOp>(context, std::move(inputs));
  });
  return absl::OkStatus();
}

const OpRegistration<v1::Zip> kZip("zip",
                                   {.place = OpPlace::kAnywhere,
                                    .keeps_elements = false,
                                    .joins_in_step = true,
                                    .counts_failures = true},
                                   PlanZip);

}  // namespace
}  // namespace penstock
