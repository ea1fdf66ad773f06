#include "server/engine/order/element_turns.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/engine/order/anchored_input.h"
#include "server/engine/order/cycle_turn.h"
#include "server/engine/order/window_dataset.h"

namespace penstock {
namespace {

class ElementTurnsOp final : public OrderOp {
 public:
  ElementTurnsOp(FrontContext& context, const OrderNode& nested, uint32_t width,
                 uint32_t cycle_length, uint64_t block_length, std::unique_ptr<OrderOp> input)
      : context_(context),
        nested_(nested),
        width_(width),
        input_(context, std::move(input)),
        places_(cycle_length),
        turn_(cycle_length, block_length) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (!status_.ok()) return Pulled::kFailed;
    if (const Pulled result = KnowOpened(); result != Pulled::kSome) return result;
    while (*pulled < count) {
      // Datasets may come to nothing for ever.
      if (context_.interrupted()) return Pulled::kBlocked;
      Place& place = places_[turn_.place()];
      if (!place.taken_by_element) {
        while (num_known_ <= num_opened_ && !is_over_) {
          const Pulled known = KnowNext();
          if (known == Pulled::kBlocked || known == Pulled::kFailed) return known;
        }
        if (num_known_ <= num_opened_) {
          if (!IsAnyTaken()) return Pulled::kEnd;
          turn_.PassOn();
          continue;
        }
        place.taken_by_element = true;
        place.element = num_opened_++;
      }
      if (const Pulled result = Open(place); result != Pulled::kSome) return result;
      uint64_t arrived = 0;
      const Pulled result = place.dataset->Pull(turn_.Share(count - *pulled), out, &arrived);
      *pulled += arrived;
      place.taken += arrived;
      turn_.Take(arrived);
      if (result == Pulled::kBlocked) return result;
      if (result == Pulled::kFailed) return Fail(place.dataset->status());
      if (result == Pulled::kEnd) {
        Close(place);
        DropFinished();
        turn_.PassOn();
      } else if (turn_.is_over()) {
        turn_.PassOn();
      }
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    return SkipByPulling(*this, context_, count, skipped);
  }

  void Restart(uint64_t epoch) override {
    for (Place& place : places_) Close(place);
    input_.Restart(epoch);
    epoch_ = epoch;
    scope_pass_ = context_.scope_pass;
    first_ = num_opened_ = num_known_ = 0;
    turn_.Set(0, 0);
    is_over_ = false;
    status_ = absl::OkStatus();
  }

  void Save(Position& position) const override {
    position.Add(epoch_);
    position.Add(first_);
    position.Add(num_opened_ - first_);
    position.Add(turn_.place());
    position.Add(turn_.taken());
    for (const Place& place : places_) {
      position.Add(place.taken_by_element ? place.element - first_ + 1 : 0);
      if (place.taken_by_element) position.Add(place.taken + place.to_skip);
    }
    input_.Save(position);
  }

  absl::Status Restore(Position& position) override {
    epoch_ = position.Take();
    first_ = num_known_ = position.Take();
    bool valid = !__builtin_add_overflow(first_, position.Take(), &num_opened_);
    const uint64_t turn = position.Take();
    valid = turn_.Set(turn, position.Take()) && valid;
    for (Place& place : places_) {
      const uint64_t number = position.Take();
      if (number == 0) continue;
      place.taken_by_element = true;
      place.element = first_ + number - 1;
      place.to_skip = position.Take();
      valid = valid && place.element >= first_ && place.element < num_opened_;
    }
    if (!valid) return absl::InvalidArgumentError("expected turns of its cycle, found others");
    return input_.Restore(position);
  }

  std::optional<uint64_t> Count() override { return std::nullopt; }
  uint32_t width() const override { return width_; }
  absl::Status status() const override { return status_; }

 private:
  // Of the cycle.
  struct Place {
    bool taken_by_element = false;
    uint64_t element = 0;  // its number in this pass
    std::unique_ptr<WindowDataset>
        dataset;           // null before the first; open unless a cursor has just named the element
    uint64_t taken = 0;    // elements of its dataset
    uint64_t to_skip = 0;  // elements of its dataset to leave out before the next one
  };

  // One more element waits; kEnd where there is none.
  Pulled KnowNext() {
    const Pulled result = input_.Fill(num_known_ - first_ + 1);
    if (result == Pulled::kFailed) return Fail(input_.status());
    if (result == Pulled::kSome) ++num_known_;
    is_over_ = result == Pulled::kEnd;
    return result;
  }

  // The elements that a cursor was behind wait, as without it.
  Pulled KnowOpened() {
    while (num_known_ < num_opened_) {
      const Pulled result = KnowNext();
      // An input that is shorter than the cursor said would be one of other files.
      if (result == Pulled::kEnd) {
        return Fail(
            absl::FailedPreconditionError("the cursor is after more elements than there are"));
      }
      if (result != Pulled::kSome) return result;
    }
    return Pulled::kSome;
  }

  // kSome: the place's dataset is open, at the next element.
  Pulled Open(Place& place) {
    if (place.dataset == nullptr)
      place.dataset = std::make_unique<WindowDataset>(context_, nested_);
    if (!place.dataset->is_open()) {
      const RecordRef* const references = input_[place.element - first_];
      RecordList element(references, references + input_.width());
      context_.store.Share(element);
      place.dataset->Open(std::move(element), epoch_, place.element, scope_pass_);
    }
    if (place.to_skip == 0) return Pulled::kSome;
    uint64_t skipped = 0;
    const Pulled result = place.dataset->Skip(place.to_skip, &skipped);
    place.to_skip -= skipped;
    place.taken += skipped;
    if (result == Pulled::kFailed) return Fail(place.dataset->status());
    if (result == Pulled::kBlocked) return result;
    // A dataset that is shorter than the cursor said would be one of other files.
    place.to_skip = 0;
    return Pulled::kSome;
  }

  static void Close(Place& place) {
    if (place.dataset != nullptr) place.dataset->Close();
    place.taken_by_element = false;
    place.taken = place.to_skip = 0;
  }

  // Elements in front of the oldest one that is in the cycle are not needed any more.
  void DropFinished() {
    uint64_t oldest = num_opened_;
    for (const Place& place : places_) {
      if (place.taken_by_element) oldest = std::min(oldest, place.element);
    }
    uint64_t finished = oldest - first_;
    first_ += finished;
    input_.Drop(&finished);
  }

  bool IsAnyTaken() const {
    return std::any_of(places_.begin(), places_.end(),
                       [](const Place& place) { return place.taken_by_element; });
  }

  Pulled Fail(absl::Status status) {
    status_ = std::move(status);
    return Pulled::kFailed;
  }

  FrontContext& context_;
  const OrderNode& nested_;
  const uint32_t width_;
  AnchoredInput input_;  // from element number first_ on
  std::vector<Place> places_;
  CycleTurn turn_;
  uint64_t epoch_ = 0;
  uint64_t scope_pass_ = 0;  // FrontContext::scope_pass of this pass
  uint64_t first_ = 0;
  uint64_t num_opened_ = 0;  // elements that have got a place
  uint64_t num_known_ = 0;   // elements that wait or have been dropped
  bool is_over_ = false;     // the input has no more elements
  absl::Status status_;
};

}  // namespace

OrderFactory ElementTurns(const OrderNode& nested, uint32_t width, uint32_t cycle_length,
                          uint64_t block_length) {
  return [&nested, width, cycle_length, block_length](FrontContext& context, OrderInputs inputs) {
    return std::make_unique<ElementTurnsOp>(context, nested, width, cycle_length, block_length,
                                            std::move(inputs[0]));
  };
}

}  // namespace penstock
