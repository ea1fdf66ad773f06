#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

// Its position: the pass, whether it has had an element, and its input's.
class RepeatOp final : public ChainedOrderOp {
 public:
  // No count: without end.
  RepeatOp(FrontContext& context, std::unique_ptr<OrderOp> input, std::optional<uint64_t> count,
           bool relative)
      : ChainedOrderOp(std::move(input)), context_(context), count_(count), relative_(relative) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      if (IsOver()) return Pulled::kEnd;
      const uint64_t before = *pulled;
      const size_t refs_before = out.size();
      const Pulled result = input().Pull(count, out, pulled);
      NumberElements(absl::MakeSpan(out).subspan(refs_before));
      has_elements_ = has_elements_ || *pulled > before;
      if (result == Pulled::kBlocked || result == Pulled::kFailed) return result;
      if (result != Pulled::kEnd) continue;
      if (const Pulled next = NextPass(); next != Pulled::kSome) return next;
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    while (*skipped < count) {
      if (IsOver()) return Pulled::kEnd;
      const Pulled passes = SkipPasses(count, skipped);
      if (passes == Pulled::kBlocked) return passes;
      if (passes == Pulled::kSome) continue;
      const uint64_t before = *skipped;
      const Pulled result = input().Skip(count, skipped);
      has_elements_ = has_elements_ || *skipped > before;
      if (result == Pulled::kBlocked || result == Pulled::kFailed) return result;
      if (result != Pulled::kEnd) continue;
      if (const Pulled next = NextPass(); next != Pulled::kSome) return next;
    }
    return Pulled::kSome;
  }

  void Restart(uint64_t epoch) override {
    // Passes of a repeat inside a repeat are numbered on, so that no two draw alike.
    first_epoch_ = epoch * count_.value_or(kMixesEpochs);
    scope_pass_ = context_.scope_pass;
    GoToPass(0);
  }

  uint64_t pass() const override { return pass_; }
  void BeginPass(uint64_t pass) override { GoToPass(pass); }

  void Save(Position& position) const override {
    position.Add(first_epoch_);
    position.Add(pass_);
    position.Add(has_elements_);
    ChainedOrderOp::Save(position);
  }

  absl::Status Restore(Position& position) override {
    first_epoch_ = position.Take();
    const uint64_t pass = position.Take();
    if (pass > count_.value_or(kMaxPass)) {
      return absl::InvalidArgumentError(
          absl::StrCat("not a position of this pipeline: in pass ", pass, " of ",
                       count_ ? absl::StrCat(*count_) : std::string("a repeat without end")));
    }
    GoToPass(pass);
    has_elements_ = position.Take() != 0;
    return ChainedOrderOp::Restore(position);
  }

  std::optional<uint64_t> Count() override {
    if (count_ == 0) return 0;
    const std::optional<uint64_t> length = input().Count();
    if (!length || *length == 0 || *length == kEndless) return length;
    uint64_t product = 0;
    if (!count_ || __builtin_mul_overflow(*length, *count_, &product)) return kEndless;
    return product;
  }

 private:
  // Of a repeat without end: nobody gets there, and behind the last number there is none.
  static constexpr uint64_t kMaxPass = uint64_t{1} << 63;

  // Where a repeat without end is inside of another one, which has only so many passes of it taken.
  static constexpr uint64_t kMixesEpochs = 0x9E3779B97F4A7C15;

  // Tells references of this pass which one it is.
  void NumberElements(absl::Span<RecordRef> references) const {
    const uint64_t pass = pass_, epoch = first_epoch_ + pass_;
    if (relative_) {
      for (RecordRef& reference : references) reference.epoch = MixPath(reference.epoch, pass);
    } else {
      for (RecordRef& reference : references) reference.epoch = epoch;
    }
  }

  bool IsOver() const { return count_ && pass_ == *count_; }

  // kSome: the next pass has begun, if it is not behind the last; kBlocked: the same, and the front
  // is wanted elsewhere; kEnd: there is none. As in tf.data, an endless repeat ends with a pass
  // without elements, and a finite one goes through all of its passes; but not where it is known
  // that none of them has any.
  Pulled NextPass() {
    const bool is_empty = !has_elements_;
    if (is_empty && !count_) return Pulled::kEnd;
    std::optional<uint64_t> length;
    if (is_empty && !CountNow(input(), context_, &length)) return Pulled::kBlocked;
    if (length == 0) return Pulled::kEnd;
    GoToPass(pass_ + 1);
    return is_empty && context_.interrupted() ? Pulled::kBlocked : Pulled::kSome;
  }

  void GoToPass(uint64_t pass) {
    pass_ = pass;
    has_elements_ = false;
    if (IsOver()) return;
    const uint64_t around =
        std::exchange(context_.scope_pass, context_.nested ? MixPath(scope_pass_, pass) : 0);
    input().Restart(first_epoch_ + pass_);
    context_.scope_pass = around;
  }

  // Leaves out whole passes, if a pass is about to begin and its length is known; kEnd where there
  // are none to leave out.
  Pulled SkipPasses(uint64_t count, uint64_t* skipped) {
    if (has_elements_) return Pulled::kEnd;
    std::optional<uint64_t> length;
    if (!CountNow(input(), context_, &length)) return Pulled::kBlocked;
    if (!length || *length == 0 || *length == kEndless || count - *skipped < *length)
      return Pulled::kEnd;
    uint64_t passes = (count - *skipped) / *length;
    if (count_) passes = std::min(passes, *count_ - pass_);
    *skipped += passes * *length;
    GoToPass(pass_ + passes);
    return Pulled::kSome;
  }

  FrontContext& context_;
  const std::optional<uint64_t> count_;
  const bool relative_;  // as PassNumbers has it
  uint64_t first_epoch_ = 0;
  uint64_t scope_pass_ = 0;  // of the repeats behind it
  uint64_t pass_ = 0;
  bool has_elements_ = false;  // of this pass
};

const OpRegistration<v1::Repeat> kRepeat(
    "repeat", {.keeps_elements = false, .passes = v1::Repeat::kCountFieldNumber},
    [](const v1::Repeat& options, PlanBuilder& plan) -> absl::Status {
      std::optional<uint64_t> count;
      if (options.has_count() && options.count() != -1) {
        if (options.count() < 0)
          return absl::InvalidArgumentError(absl::StrCat(
              "count: expected -1 (without end) or at least 0, found ", options.count()));
        count = options.count();
      }
      if (!count || *count == 0) plan.SetEndless(!count);
      plan.AddOrder([count, numbers = plan.BeginRepeat(/*is_several=*/!count || *count > 1)](
                        FrontContext& context, OrderInputs inputs) {
        return std::make_unique<RepeatOp>(context, std::move(inputs[0]), count, numbers->relative);
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
