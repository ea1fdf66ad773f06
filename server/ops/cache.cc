#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/op_registry.h"

namespace penstock {
namespace {

uint64_t DefaultBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE)) / 4;
}

// Keeps elements by their ordinals, whichever come first, as long as there is room; what is kept stays. Others are had from the input, which
// is always in its first pass. The position is the ordinal alone.
class CacheOp final : public OrderOp {
 public:
  CacheOp(FrontContext& context, uint64_t bytes_max, std::unique_ptr<OrderOp> input)
      : context_(context), bytes_max_(bytes_max), input_(std::move(input)) {}
  ~CacheOp() override { context_.store.Release(kept_); }

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      if (!status_.ok()) return Pulled::kFailed;
      if (next_ >= length_) return Pulled::kEnd;
      if (IsKept(next_)) {
        context_.store.Share({&kept_[next_], 1});
        out.push_back(kept_[next_++]);
        ++*pulled;
        continue;
      }
      const Pulled result = FromInput(count - *pulled, out, pulled);
      if (result == Pulled::kBlocked || result == Pulled::kFailed) return result;
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    while (*skipped < count) {
      if (!status_.ok()) return Pulled::kFailed;
      if (next_ >= length_) return Pulled::kEnd;
      if (IsKept(next_)) {
        ++next_;
        ++*skipped;
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
    status_ = absl::OkStatus();
  }
  void Save(Position& position) const override { position.Add(next_); }
  absl::Status Restore(Position& position) override {
    next_ = position.Take();
    return absl::OkStatus();
  }
  std::optional<uint64_t> Count() override { return input_->Count(); }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return status_; }

 private:
  enum class Call { kNone, kPull, kSkip, kFailed };  // of the input, that has not been finished

  bool IsKept(uint64_t ordinal) const {
    return ordinal < kept_.size() && kept_[ordinal].data != nullptr;
  }

  // The next elements, up to one that is kept.
  Pulled FromInput(uint64_t count, RecordList& out, uint64_t* pulled) {
    if (const Pulled result = GoTo(next_, Call::kPull); result != Pulled::kSome) return result;
    uint64_t wanted = 1;
    while (wanted < count && !IsKept(next_ + wanted)) ++wanted;
    const size_t before = out.size();
    uint64_t arrived = 0;
    const Pulled result = Noted(Call::kPull, input_->Pull(wanted, out, &arrived));
    for (uint64_t i = 0; i < arrived; ++i) Keep(next_ + i, out[before + i]);
    input_next_ += arrived;
    next_ += arrived;
    *pulled += arrived;
    if (result == Pulled::kEnd) length_ = input_next_;
    return result;
  }

  // Brings the input to an element, for the call that follows. One that was blocked can only be gone on with.
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

  void Keep(uint64_t ordinal, const RecordRef& element) {
    const uint64_t bytes = element.length + sizeof(RecordRef);
    if (bytes_ + bytes > bytes_max_ || ordinal >= UINT32_MAX) return;
    bytes_ += bytes;
    if (kept_.size() <= ordinal) kept_.resize(ordinal + 1);
    context_.store.Share({&element, 1});
    kept_[ordinal] = element;
  }

  FrontContext& context_;
  const uint64_t bytes_max_;
  const std::unique_ptr<OrderOp> input_;
  RecordList kept_;  // by ordinal; without data where none is kept
  uint64_t bytes_ = 0;
  uint64_t next_ = 0;
  uint64_t input_next_ = 0;  // of the input
  Call unfinished_ = Call::kNone;
  uint64_t length_ = UINT64_MAX;
  absl::Status status_;
};

const OpRegistration<v1::Cache> kCache(
    "cache", [](const v1::Cache& options, PlanBuilder& plan) -> absl::Status {
      if (options.max_bytes() < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("max_bytes: expected at least 0, found ", options.max_bytes()));
      }
      if (plan.element_files() || plan.window_elements() != nullptr) {
        return absl::InvalidArgumentError(
            "expected to stand outside of nested stages, which are for another file or window each "
            "time");
      }
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      plan.EndSegmentAsIs();
      const uint64_t bytes_max =
          options.has_max_bytes() ? static_cast<uint64_t>(options.max_bytes()) : DefaultBytes();
      plan.AddOrder(
          [bytes_max](FrontContext& context, OrderInputs inputs) {
            return std::make_unique<CacheOp>(context, bytes_max, std::move(inputs[0]));
          },
          CursorClass::kReplayOrder);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
