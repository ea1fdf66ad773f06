#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/section/like_elements.h"

namespace penstock {
namespace {

// One input after another; elements with fewer references than the widest are filled up. Its
// position: the input whose turn it is, and that input's.
class ConcatenateOp final : public OrderOp {
 public:
  explicit ConcatenateOp(OrderInputs inputs) : inputs_(std::move(inputs)) {
    for (const std::unique_ptr<OrderOp>& input : inputs_) width_ = std::max(width_, input->width());
  }

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (current_ < inputs_.size()) {
      OrderOp& input = *inputs_[current_];
      Pulled result;
      if (input.width() == width_) {
        result = input.Pull(count, out, pulled);
      } else {
        uint64_t arrived = 0;
        incoming_.clear();
        result = input.Pull(count - *pulled, incoming_, &arrived);
        for (uint64_t i = 0; i < arrived; ++i) {
          const RecordRef* element = &incoming_[i * input.width()];
          out.insert(out.end(), element, element + input.width());
          PadElement(width_ - input.width(), out);
        }
        *pulled += arrived;
      }
      if (result != Pulled::kEnd) return result;
      ++current_;
    }
    return Pulled::kEnd;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    while (current_ < inputs_.size()) {
      const Pulled result = inputs_[current_]->Skip(count, skipped);
      if (result != Pulled::kEnd) return result;
      ++current_;
    }
    return Pulled::kEnd;
  }

  void Restart(uint64_t epoch) override {
    current_ = 0;
    for (std::unique_ptr<OrderOp>& input : inputs_) input->Restart(epoch);
    epoch_ = epoch;
  }
  void Save(Position& position) const override {
    position.Add(epoch_);
    position.Add(current_);
    if (current_ < inputs_.size()) inputs_[current_]->Save(position);
  }
  absl::Status Restore(Position& position) override {
    Restart(position.Take());
    current_ = std::min<uint64_t>(position.Take(), inputs_.size());
    return current_ < inputs_.size() ? inputs_[current_]->Restore(position) : absl::OkStatus();
  }
  std::optional<uint64_t> Count() override {
    uint64_t sum = 0;
    for (std::unique_ptr<OrderOp>& input : inputs_) {
      const std::optional<uint64_t> count = input->Count();
      if (!count) return std::nullopt;
      if (__builtin_add_overflow(sum, *count, &sum)) return kEndless;
    }
    return sum;
  }
  uint32_t width() const override { return width_; }
  absl::Status status() const override {
    return current_ < inputs_.size() ? inputs_[current_]->status() : absl::OkStatus();
  }

 private:
  OrderInputs inputs_;
  uint32_t width_ = 0;
  uint64_t epoch_ = 0;
  uint64_t current_ = 0;
  RecordList incoming_;
};

const OpRegistration<v1::Concatenate> kConcatenate(
    "concatenate", {.place = OpPlace::kAnywhere, .keeps_elements = false},
    [](const v1::Concatenate& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<std::vector<Dataset>> inputs = plan.BuildInputs(options.input());
      if (!inputs.ok()) return inputs.status();
      if (inputs->size() < 2) {
        return absl::InvalidArgumentError(
            absl::StrCat("expected at least two inputs, found ", inputs->size()));
      }
      if (absl::Status status = MakeAlike(plan.stage_index(), &*inputs); !status.ok())
        return status;
      plan.SetBranches(*std::move(inputs), [](FrontContext&, OrderInputs inputs) {
        return std::make_unique<ConcatenateOp>(std::move(inputs));
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
