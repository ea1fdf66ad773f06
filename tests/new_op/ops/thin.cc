#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/spec/drawn_seed.h"

namespace penstock {
namespace {

// Its position: the number of the next element of its input, and its input's.
class ThinOp final : public ChainedOrderOp {
 public:
  ThinOp(std::unique_ptr<OrderOp> input, uint64_t key, uint32_t one_of)
      : ChainedOrderOp(std::move(input)), key_(key), one_of_(one_of), draws_(key, 0) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      const uint64_t before = *pulled;
      uint64_t skipped = 0;
      const Pulled result =
          IsKept() ? input().Pull(before + 1, out, pulled) : input().Skip(1, &skipped);
      if (result != Pulled::kSome) return result;
      ++next_;
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    while (*skipped < count) {
      uint64_t one = 0;
      if (const Pulled result = input().Skip(1, &one); result != Pulled::kSome) return result;
      if (IsKept()) ++*skipped;
      ++next_;
    }
    return Pulled::kSome;
  }

  void Restart(uint64_t epoch) override {
    epoch_ = epoch;
    draws_ = DrawSequence(key_, epoch);
    next_ = 0;
    ChainedOrderOp::Restart(epoch);
  }

  void Save(Position& position) const override {
    position.Add(epoch_);
    position.Add(next_);
    ChainedOrderOp::Save(position);
  }

  absl::Status Restore(Position& position) override {
    epoch_ = position.Take();
    draws_ = DrawSequence(key_, epoch_);
    next_ = position.Take();
    return ChainedOrderOp::Restore(position);
  }

  std::optional<uint64_t> Count() override { return std::nullopt; }

 private:
  bool IsKept() { return draws_.Below(next_, one_of_) == 0; }

  const uint64_t key_;
  const uint32_t one_of_;
  uint64_t epoch_ = 0;
  DrawSequence draws_;
  uint64_t next_ = 0;
};

const OpRegistration<v1::Thin> kThin(
    "thin",
    {.keeps_elements = false,
     .seed = v1::Thin::kSaltFieldNumber,
     .folder = v1::Thin::kNotesFieldNumber,
     .without_effect = {v1::Thin::kNotesMaxFieldNumber},
     .may_change = {v1::Thin::kOneOfFieldNumber}},
    [](const v1::Thin& options, PlanBuilder& plan) -> absl::Status {
      if (options.one_of() < 1 || options.one_of() > UINT32_MAX) {
        return absl::InvalidArgumentError(
            absl::StrCat("one_of: expected 1 to ", UINT32_MAX, ", found ", options.one_of()));
      }
      v1::Thin& resolved = *plan.stage_spec().mutable_thin();
      if (!resolved.has_salt()) resolved.set_salt(DrawSeed());
      plan.AddOrder(
          [key = plan.DrawKey(resolved.salt()), one_of = static_cast<uint32_t>(options.one_of())](
              FrontContext&, OrderInputs inputs) {
            return std::make_unique<ThinOp>(std::move(inputs[0]), key, one_of);
          });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
