#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

// Its position: how many elements are left out before the next one, and its input's.
class ShardOp final : public ChainedOrderOp {
 public:
  ShardOp(std::unique_ptr<OrderOp> input, uint64_t num_shards, uint64_t index)
      : ChainedOrderOp(std::move(input)),
        num_shards_(num_shards),
        index_(index),
        to_leave_out_(index) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      Pulled result = LeaveOut();
      if (result != Pulled::kSome) return result;
      const uint64_t before = *pulled;
      result = input().Pull(before + 1, out, pulled);
      if (result != Pulled::kSome) return result;
      to_leave_out_ = num_shards_ - 1;
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    // All of them at once, however many: the input knows how to leave out many, and looks at who
    // waits meanwhile. What no number can hold is several calls.
    constexpr uint64_t kMost = UINT64_MAX / 2;
    while (*skipped < count) {
      const uint64_t turns = std::min(count - *skipped - 1, (kMost - to_leave_out_) / num_shards_);
      uint64_t passed = 0;
      const Pulled result = input().Skip(to_leave_out_ + turns * num_shards_ + 1, &passed);
      if (passed <= to_leave_out_) {
        to_leave_out_ -= passed;
      } else {
        const uint64_t behind_first = passed - to_leave_out_ - 1;
        *skipped += 1 + behind_first / num_shards_;
        to_leave_out_ = num_shards_ - 1 - behind_first % num_shards_;
      }
      if (result != Pulled::kSome) return result;
    }
    return Pulled::kSome;
  }

  void Restart(uint64_t epoch) override {
    to_leave_out_ = index_;
    ChainedOrderOp::Restart(epoch);
  }

  void Save(Position& position) const override {
    position.Add(to_leave_out_);
    ChainedOrderOp::Save(position);
  }

  absl::Status Restore(Position& position) override {
    to_leave_out_ = std::min(position.Take(), num_shards_ - 1);
    return ChainedOrderOp::Restore(position);
  }

  std::optional<uint64_t> Count() override {
    const std::optional<uint64_t> count = input().Count();
    if (!count || *count == kEndless) return count;
    return *count / num_shards_ + (*count % num_shards_ > index_ ? 1 : 0);
  }

 private:
  Pulled LeaveOut() {
    if (to_leave_out_ == 0) return Pulled::kSome;
    uint64_t skipped = 0;
    const Pulled result = input().Skip(to_leave_out_, &skipped);
    to_leave_out_ -= skipped;
    return result;
  }

  const uint64_t num_shards_;
  const uint64_t index_;
  uint64_t to_leave_out_;  // before the next element
};

const OpRegistration<v1::Shard> kShard(
    "shard", {.keeps_elements = false, .counts_failures = true},
    [](const v1::Shard& options, PlanBuilder& plan) -> absl::Status {
      if (options.num_shards() < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("num_shards: expected at least 1, found ", options.num_shards()));
      }
      if (options.index() < 0 || options.index() >= options.num_shards()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "index: expected 0 to ", options.num_shards() - 1, ", found ", options.index()));
      }
      plan.AddOrder([num_shards = options.num_shards(), index = options.index()](
                        FrontContext&, OrderInputs inputs) {
        return std::make_unique<ShardOp>(std::move(inputs[0]), num_shards, index);
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
