#include "server/engine/order/directed_order.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace penstock {
namespace {

class DirectedOrderOp final : public OrderOp {
 public:
  DirectedOrderOp(FrontContext& context, std::unique_ptr<Chooser> chooser, OrderInputs inputs,
                  bool stop_on_empty)
      : context_(context),
        chooser_(std::move(chooser)),
        inputs_(std::move(inputs)),
        stop_on_empty_(stop_on_empty) {
    for (const std::unique_ptr<OrderOp>& input : inputs_) width_ = std::max(width_, input->width());
    ended_.resize(inputs_.size());
  }

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      if (over_) return Pulled::kEnd;
      if (!status_.ok()) return Pulled::kFailed;
      // Choices may be passed over for ever.
      if (context_.interrupted()) return Pulled::kBlocked;
      if (!choice_) {
        uint64_t choice = 0;
        const Pulled result = chooser_->Next(ended_, &choice);
        if (result == Pulled::kBlocked) return result;
        if (result != Pulled::kSome) {
          over_ = result == Pulled::kEnd;
          status_ = chooser_->status();
          continue;
        }
        if (ended_[choice]) continue;
        choice_ = choice;
      }
      if (const Pulled result = TakeFrom(*inputs_[*choice_], out, pulled);
          result == Pulled::kBlocked)
        return result;
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    return SkipByPulling(*this, context_, count, skipped);
  }

  void Restart(uint64_t epoch) override {
    chooser_->Restart(epoch);
    for (std::unique_ptr<OrderOp>& input : inputs_) input->Restart(epoch);
    ended_.assign(inputs_.size(), false);
    over_ = false;
    choice_.reset();
    status_ = absl::OkStatus();
  }

  void Save(Position& position) const override {
    position.Add(over_);
    if (over_) return;
    chooser_->Save(position);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      position.Add(ended_[i]);
      if (!ended_[i]) inputs_[i]->Save(position);
    }
  }

  absl::Status Restore(Position& position) override {
    over_ = position.Take() != 0;
    if (over_) return absl::OkStatus();
    if (absl::Status status = chooser_->Restore(position); !status.ok()) return status;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      ended_[i] = position.Take() != 0;
      if (ended_[i]) continue;
      if (absl::Status status = inputs_[i]->Restore(position); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  std::optional<uint64_t> Count() override {
    if (stop_on_empty_) return std::nullopt;
    uint64_t sum = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::optional<bool> takes_all = chooser_->TakesAll(i);
      if (!takes_all) return std::nullopt;
      if (!*takes_all) continue;
      const std::optional<uint64_t> count = inputs_[i]->Count();
      if (!count) return std::nullopt;
      if (__builtin_add_overflow(sum, *count, &sum)) return kEndless;
    }
    return sum;
  }
  uint32_t width() const override { return width_; }
  absl::Status status() const override { return status_; }

 private:
  // Elements with fewer references than the widest are filled up.
  Pulled TakeFrom(OrderOp& input, RecordList& out, uint64_t* pulled) {
    uint64_t arrived = 0;
    const Pulled result = input.Pull(1, out, &arrived);
    switch (result) {
      case Pulled::kSome:
        PadElement(width_ - input.width(), out);
        ++*pulled;
        choice_.reset();
        break;
      case Pulled::kEnd:
        ended_[*choice_] = true;
        over_ = stop_on_empty_ || std::find(ended_.begin(), ended_.end(), false) == ended_.end();
        choice_.reset();
        break;
      case Pulled::kFailed:
        status_ = input.status();
        break;
      case Pulled::kBlocked:
        break;
    }
    return result;
  }

  FrontContext& context_;
  const std::unique_ptr<Chooser> chooser_;
  OrderInputs inputs_;
  const bool stop_on_empty_;
  uint32_t width_ = 0;
  std::vector<bool> ended_;
  bool over_ = false;
  std::optional<uint64_t> choice_;  // whose element is waited for
  absl::Status status_;
};

}  // namespace

std::unique_ptr<OrderOp> DirectedOrder(FrontContext& context, std::unique_ptr<Chooser> chooser,
                                       OrderInputs inputs, bool stop_on_empty) {
  return std::make_unique<DirectedOrderOp>(context, std::move(chooser), std::move(inputs),
                                           stop_on_empty);
}

}  // namespace penstock
