#include "server/engine/keep/kept_order.h"

#include <algorithm>
#include <utility>

#include "server/engine/tasks/errands.h"

namespace penstock {
namespace {

class KeptOrder final : public OrderOp {
 public:
  KeptOrder(FrontContext& context, std::unique_ptr<KeptElements> kept,
            std::unique_ptr<OrderOp> input)
      : context_(context), kept_(std::move(kept)), input_(std::move(input)) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (!BeginPass()) return Pulled::kBlocked;
    while (*pulled < count) {
      if (!IsSound()) return Pulled::kFailed;
      if (next_ >= length_) return Ended();
      if (kept_->Has(next_)) {
        const Pulled dealt = kept_->Deal(next_, out);
        if (dealt == Pulled::kBlocked) return dealt;
        if (dealt == Pulled::kSome) {
          ++next_;
          ++*pulled;
          continue;
        }
      }
      if (IsBehindKept()) continue;
      if (!kept_->IsReady(next_)) return Pulled::kBlocked;
      const Pulled result = FromInput(count - *pulled, out, pulled);
      if (result == Pulled::kBlocked || result == Pulled::kFailed) return result;
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    if (!BeginPass()) return Pulled::kBlocked;
    while (*skipped < count) {
      if (!IsSound()) return Pulled::kFailed;
      if (next_ >= length_) return Ended();
      if (kept_->Has(next_)) {
        ++next_;
        ++*skipped;
        continue;
      }
      if (IsBehindKept()) continue;
      // Behind a call that was blocked, that call goes on.
      if (unfinished_ == Call::kPull || (unfinished_ != Call::kSkip && kept_->Wants(next_))) {
        if (!kept_->IsReady(next_)) return Pulled::kBlocked;
        skipped_.clear();
        const Pulled result =
            FromInput(std::min<uint64_t>(count - *skipped, kSkippedAtOnce), skipped_, skipped);
        context_.store.Release(skipped_);
        if (result == Pulled::kBlocked || result == Pulled::kFailed) return result;
        if (context_.interrupted()) return Pulled::kBlocked;
        continue;
      }
      if (const Pulled result = GoTo(next_, Call::kSkip); result != Pulled::kSome) {
        if (result == Pulled::kEnd) continue;
        return result;
      }
      uint64_t done = 0;
      const Pulled result = Noted(Call::kSkip, input_->Skip(count - *skipped, &done));
      input_next_ += done;
      next_ += done;
      *skipped += done;
      if (result == Pulled::kEnd) length_ = input_next_;
      if (result == Pulled::kBlocked || result == Pulled::kFailed) return result;
    }
    return Pulled::kSome;
  }

  void Restart(uint64_t) override {
    next_ = 0;
    has_begun_ = false;
    status_ = absl::OkStatus();
    if (context_.cancelled.load(std::memory_order_relaxed)) {
      kept_->GiveBack();
      input_->Restart(0);
      input_next_ = 0;
      unfinished_ = Call::kNone;
    }
  }
  void Save(Position& position) const override { position.Add(next_); }
  absl::Status Restore(Position& position) override {
    next_ = position.Take();
    return absl::OkStatus();
  }
  std::optional<uint64_t> Count() override {
    if (const std::optional<uint64_t> count = input_->Count()) return count;
    if (BeginPass()) return kept_->Count();
    context_.errands->NoteCountWait();
    return std::nullopt;
  }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return status_; }

 private:
  enum class Call { kNone, kPull, kSkip, kFailed };  // of the input, that has not been finished
  static constexpr uint64_t kSkippedAtOnce = 1024;

  // False while it is not known yet what is kept.
  bool BeginPass() {
    if (!has_begun_) has_begun_ = kept_->BeginPass();
    return has_begun_;
  }

  bool IsSound() {
    if (status_.ok()) status_ = kept_->status();
    return status_.ok();
  }

  // Whether what is kept tells that there is no such element.
  bool IsBehindKept() {
    const std::optional<uint64_t> count = kept_->Count();
    if (!count || next_ < *count) return false;
    length_ = *count;
    return true;
  }

  Pulled Ended() {
    const Pulled result = kept_->End(length_);
    if (result == Pulled::kFailed) status_ = kept_->status();
    return result;
  }

  // The next elements, up to one that is kept.
  Pulled FromInput(uint64_t count, RecordList& out, uint64_t* pulled) {
    if (const Pulled result = GoTo(next_, Call::kPull); result != Pulled::kSome) return result;
    uint64_t wanted = 1;
    while (wanted < count && !kept_->Has(next_ + wanted)) ++wanted;
    const size_t before = out.size();
    uint64_t arrived = 0;
    const Pulled result = Noted(Call::kPull, input_->Pull(wanted, out, &arrived));
    for (uint64_t i = 0; i < arrived; ++i) kept_->Keep(next_ + i, out[before + i]);
    input_next_ += arrived;
    next_ += arrived;
    *pulled += arrived;
    if (result == Pulled::kEnd) length_ = input_next_;
    return result;
  }

  // Brings the input to an element, for the call that follows. One that was blocked can only be
  // gone on with.
  Pulled GoTo(uint64_t ordinal, Call next) {
    const bool goes_on = input_next_ == ordinal ? unfinished_ == next : unfinished_ == Call::kSkip;
    if (input_next_ > ordinal || (unfinished_ != Call::kNone && !goes_on)) {
      input_->Restart(0);
      input_next_ = 0;
      unfinished_ = Call::kNone;
    }
    while (input_next_ < ordinal) {
      uint64_t skipped = 0;
      const Pulled result = Noted(Call::kSkip, input_->Skip(ordinal - input_next_, &skipped));
      input_next_ += skipped;
      // A stream that is shorter than the cursor said would be one of other files.
      if (result == Pulled::kEnd) length_ = input_next_;
      if (result != Pulled::kSome) return result;
    }
    return Pulled::kSome;
  }

  Pulled Noted(Call call, Pulled result) {
    unfinished_ = result == Pulled::kBlocked ? call : Call::kNone;
    if (result == Pulled::kFailed) {
      status_ = input_->status();
      unfinished_ = Call::kFailed;
    }
    return result;
  }

  FrontContext& context_;
  const std::unique_ptr<KeptElements> kept_;
  const std::unique_ptr<OrderOp> input_;
  RecordList skipped_;
  bool has_begun_ = false;
  uint64_t next_ = 0;
  uint64_t input_next_ = 0;  // of the input
  Call unfinished_ = Call::kNone;
  uint64_t length_ = UINT64_MAX;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<OrderOp> MakeKeptOrder(FrontContext& context, std::unique_ptr<KeptElements> kept,
                                       std::unique_ptr<OrderOp> input) {
  return std::make_unique<KeptOrder>(context, std::move(kept), std::move(input));
}

}  // namespace penstock
