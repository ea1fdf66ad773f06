#include "server/engine/order/interleave_op.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/engine/order/cycle_turn.h"
#include "server/engine/order/interleave_state.h"

namespace penstock {
namespace {

constexpr uint64_t kDroppedAtOnce = 1024;

class InterleaveOp final : public ChainedOrderOp {
 public:
  InterleaveOp(FrontContext& context, const OrderNode& nested, uint32_t width,
               uint32_t cycle_length, uint64_t block_length, std::unique_ptr<OrderOp> input)
      : ChainedOrderOp(std::move(input)),
        context_(context),
        nested_(nested),
        paths_(nested.elements_paths.get()),
        width_(width),
        block_length_(block_length),
        cycle_(cycle_length),
        turn_(cycle_length, block_length) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (const Pulled result = GoToPosition(); result != Pulled::kSome) return result;
    return TakeElements(count, out, pulled);
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    // From the start of a pass a place may be sought; from anywhere else what lies between is
    // dropped.
    if (num_elements_ == 0 && resume_at_ == 0) {
      resume_at_ = count - *skipped;
      seeks_for_skip_ = true;
    }
    if (const Pulled result = GoToPosition(); result != Pulled::kSome) return result;
    if (std::exchange(seeks_for_skip_, false)) {
      *skipped += taken_;
      return *skipped == count ? Pulled::kSome : Pulled::kEnd;
    }
    return SkipByPulling(*this, context_, count, skipped);
  }

  void Restart(uint64_t epoch) override {
    for (std::unique_ptr<Nested>& nested : cycle_) Close(std::move(nested));
    if (seek_) Close(std::move(seek_->counted));
    // What they had asked for may have arrived.
    for (std::unique_ptr<Nested>& nested : idle_) nested->op->Restart(0);
    waiting_.reset();
    epoch_ = epoch;
    scope_pass_ = context_.scope_pass;
    num_open_ = 0;
    num_elements_ = 0;
    turn_.Set(0, 0);
    taken_ = 0;
    resume_at_ = 0;
    seeks_for_skip_ = false;
    seek_.reset();
    status_ = absl::OkStatus();
    ChainedOrderOp::Restart(epoch);
  }

  void Save(Position& position) const override {
    position.Add(epoch_);
    position.Add(taken_ + resume_at_);
  }

  absl::Status Restore(Position& position) override {
    Restart(position.Take());
    resume_at_ = position.Take();
    return absl::OkStatus();
  }

  std::optional<uint64_t> Count() override { return std::nullopt; }
  uint32_t width() const override { return width_; }
  absl::Status status() const override { return status_.ok() ? ChainedOrderOp::status() : status_; }

 private:
  // What is known of an element of the input: its first reference, which says which file it is, and
  // its path.
  struct Element {
    RecordRef reference;
    uint64_t path = 0;
  };
  // The dataset of one element.
  struct Nested {
    explicit Nested(const FrontContext& outer) : context(outer) {}
    FrontContext context;
    std::unique_ptr<OrderOp> op;
    uint64_t to_skip = 0;  // elements to leave out before the next one
  };
  // The way to a place, while the lengths of the nested datasets are found: of those that are over
  // nothing is kept, since an endless input may have any number of them in front of it.
  struct Seek {
    InterleaveState state;
    std::vector<Element> elements;    // of the input, whose datasets the places of the cycle hold
    bool over = false;                // the input has no more elements
    Element element;                  // the one that is looked at
    std::unique_ptr<Nested> counted;  // its dataset
    bool is_counting = false;         // others are coming by its length
  };

  Pulled TakeElements(uint64_t count, RecordList& out, uint64_t* pulled) {
    while (*pulled < count) {
      // Datasets may come to nothing for ever.
      if (context_.interrupted()) return Pulled::kBlocked;
      std::unique_ptr<Nested>& nested = cycle_[turn_.place()];
      if (!nested) {
        const Pulled opened = OpenNext(&nested);
        if (opened == Pulled::kEnd && num_open_ == 0) return Pulled::kEnd;
        if (opened == Pulled::kEnd) {
          turn_.PassOn();
          continue;
        }
        if (opened != Pulled::kSome) return opened;
      }
      const uint64_t wanted = turn_.Share(count - *pulled);
      uint64_t arrived = 0;
      const size_t before = out.size();
      Pulled result = SkipFirst(*nested);
      if (result == Pulled::kSome) result = nested->op->Pull(wanted, out, &arrived);
      // Nested passes are numbered by their elements too; what is handed on belongs to that of its
      // element.
      for (size_t i = before; i < out.size(); ++i) out[i].epoch = nested->context.element_epoch;
      *pulled += arrived;
      taken_ += arrived;
      turn_.Take(arrived);
      switch (result) {
        case Pulled::kSome:
          if (turn_.is_over()) turn_.PassOn();
          break;
        case Pulled::kEnd:
          Close(std::move(nested));
          --num_open_;
          turn_.PassOn();
          break;
        case Pulled::kBlocked:
          return Pulled::kBlocked;
        case Pulled::kFailed:
          status_ = nested->op->status();
          return Pulled::kFailed;
      }
    }
    return Pulled::kSome;
  }

  Pulled SkipFirst(Nested& nested) {
    if (nested.to_skip == 0) return Pulled::kSome;
    uint64_t skipped = 0;
    const Pulled result = nested.op->Skip(nested.to_skip, &skipped);
    nested.to_skip -= skipped;
    return result;
  }

  // The next element of the input: the one that a seek has left first.
  Pulled NextElement(Element* element) {
    if (!waiting_) return PullElement(element);
    *element = *std::exchange(waiting_, std::nullopt);
    return Pulled::kSome;
  }

  // The input's next element. Nobody looks at its values.
  Pulled PullElement(Element* element) {
    uint64_t pulled = 0;
    incoming_.clear();
    const Pulled result = input().Pull(1, incoming_, &pulled);
    if (pulled == 1) {
      element->reference = incoming_.front();
      if (paths_ != nullptr) element->path = paths_->PathOf(incoming_.data());
    }
    context_.store.Release(incoming_);
    return result;
  }

  Pulled OpenNext(std::unique_ptr<Nested>* nested) {
    Element element;
    if (const Pulled result = NextElement(&element); result != Pulled::kSome) return result;
    *nested = Open(element, num_elements_++);
    ++num_open_;
    return Pulled::kSome;
  }

  // An op that has been used before still owns the reads that it had asked for: it begins another
  // pass, of another file.
  std::unique_ptr<Nested> Open(const Element& element, uint64_t ordinal) {
    std::unique_ptr<Nested> nested;
    if (idle_.empty()) {
      nested = std::make_unique<Nested>(context_);
    } else {
      nested = std::move(idle_.front());
      idle_.pop_front();
    }
    nested->context.nested = true;
    nested->context.element_file = element.reference.file;
    nested->context.element_epoch = LaterPass(element.reference, context_.PassOf(epoch_));
    if (paths_ != nullptr) nested->context.scope = ScopeOf(context_, scope_pass_, element.path);
    if (nested->op == nullptr) nested->op = MakeOrder(nested_, nested->context);
    nested->op->Restart(NestedEpoch(epoch_, ordinal));
    nested->to_skip = 0;
    return nested;
  }

  void Close(std::unique_ptr<Nested> nested) {
    if (nested == nullptr) return;
    nested->op->Restart(0);
    idle_.push_back(std::move(nested));
  }

  Pulled GoToPosition() {
    if (resume_at_ == 0) return Pulled::kSome;
    // A seek that has ended on the way left off at an element, if only at the one that waits.
    if (num_elements_ > 0 || waiting_) return GoForward();
    if (!seek_) {
      seek_ = std::make_unique<Seek>();
      seek_->state.cycle.resize(cycle_.size());
      seek_->elements.resize(cycle_.size());
    }
    InterleaveState& state = seek_->state;
    while (seek_->is_counting || !TakeUntil(resume_at_, block_length_, seek_->over, &state)) {
      if (context_.interrupted()) return Pulled::kBlocked;
      if (!seek_->is_counting) {
        const Pulled result = PullElement(&seek_->element);
        if (result == Pulled::kEnd) {
          seek_->over = true;
          continue;
        }
        if (result != Pulled::kSome) return result;
        Close(std::move(seek_->counted));
        seek_->counted = Open(seek_->element, state.next_file);
      }
      const Element element = seek_->element;
      std::optional<uint64_t> count;
      seek_->is_counting = !CountNow(*seek_->counted->op, context_, &count);
      if (seek_->is_counting) return Pulled::kBlocked;
      if (!count || *count == kEndless) {
        waiting_ = element;
        EndSeek();
        return GoForward();
      }
      seek_->elements[state.position] = element;
      OpenNextFile(*count, &state);
    }
    EndSeek();
    resume_at_ = 0;
    return Pulled::kSome;
  }

  // What comes next is what comes next there.
  void EndSeek() {
    Close(std::move(seek_->counted));
    const InterleaveState& state = seek_->state;
    for (size_t i = 0; i < cycle_.size(); ++i) {
      if (!state.cycle[i].open) continue;
      cycle_[i] = Open(seek_->elements[i], state.cycle[i].file);
      cycle_[i]->to_skip = state.cycle[i].ordinal;
      ++num_open_;
    }
    num_elements_ = state.next_file;
    turn_.Set(state.position, state.taken_of_block);
    taken_ = state.taken;
    resume_at_ -= state.taken;
    seek_.reset();
  }

  Pulled GoForward() {
    while (resume_at_ > 0) {
      if (context_.interrupted()) return Pulled::kBlocked;
      uint64_t pulled = 0;
      dropped_.clear();
      const Pulled result = TakeElements(std::min(resume_at_, kDroppedAtOnce), dropped_, &pulled);
      context_.store.Release(dropped_);
      resume_at_ -= pulled;
      if (result == Pulled::kEnd) resume_at_ = 0;
      if (result != Pulled::kSome && result != Pulled::kEnd) return result;
    }
    return Pulled::kSome;
  }

  FrontContext& context_;
  const OrderNode& nested_;
  const WorkNode* const paths_;  // of the input's elements; null where nobody asks
  const uint32_t width_;
  const uint64_t block_length_;
  std::vector<std::unique_ptr<Nested>> cycle_;
  CycleTurn turn_;
  std::deque<std::unique_ptr<Nested>> idle_;
  std::optional<Element> waiting_;  // an element of the input that was looked at
  uint64_t epoch_ = 0;
  uint64_t scope_pass_ = 0;    // FrontContext::scope_pass of this pass
  uint64_t num_elements_ = 0;  // of the input that have been opened
  size_t num_open_ = 0;
  uint64_t taken_ = 0;      // in this pass
  uint64_t resume_at_ = 0;  // elements to leave out before the next one
  bool seeks_for_skip_ = false;
  std::unique_ptr<Seek> seek_;  // null: there is none
  RecordList incoming_;         // of the input, while it is pulled
  RecordList dropped_;
  absl::Status status_;
};

}  // namespace

OrderFactory InterleaveOrder(const OrderNode& nested, uint32_t width, uint32_t cycle_length,
                             uint64_t block_length) {
  return [&nested, width, cycle_length, block_length](FrontContext& context, OrderInputs inputs) {
    return std::make_unique<InterleaveOp>(context, nested, width, cycle_length, block_length,
                                          std::move(inputs[0]));
  };
}

}  // namespace penstock
