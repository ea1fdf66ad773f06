#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory_charge.h"
#include "server/engine/order/anchored_input.h"
#include "server/engine/order/window_dataset.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

constexpr int64_t kMaxSpan = int64_t{1} << 31;

struct WindowSizes {
  uint64_t size = 1;
  uint64_t shift = 1;
  uint64_t stride = 1;
  bool drop_remainder = false;
};

// The elements of the datasets of windows, one dataset after another. Its position: the pass, the
// window and how many elements of its dataset have been taken, and that of the input in front of
// the window.
class WindowOp final : public OrderOp {
 public:
  WindowOp(FrontContext& context, const OrderNode& nested, const WindowSizes& sizes,
           std::unique_ptr<OrderOp> input)
      : context_(context),
        sizes_(sizes),
        input_(context, std::move(input)),
        dataset_(context, nested) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      // Windows may come to nothing for ever.
      if (context_.interrupted()) return Pulled::kBlocked;
      if (const Pulled result = Open(); result != Pulled::kSome) return result;
      uint64_t arrived = 0;
      const Pulled result = dataset_.Pull(count - *pulled, out, &arrived);
      *pulled += arrived;
      taken_ += arrived;
      if (result == Pulled::kBlocked) return result;
      if (result == Pulled::kFailed) return Fail(dataset_.status());
      if (result == Pulled::kEnd) GoToNext();
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    return SkipByPulling(*this, context_, count, skipped);
  }

  void Restart(uint64_t epoch) override {
    dataset_.Close();
    charge_.Clear();
    input_.Restart(epoch);
    epoch_ = epoch;
    scope_pass_ = context_.scope_pass;
    window_ = taken_ = to_skip_ = to_drop_ = 0;
    ended_ = false;
    status_ = absl::OkStatus();
  }

  void Save(Position& position) const override {
    position.Add(ended_);
    if (ended_) return;
    position.Add(epoch_);
    position.Add(window_);
    position.Add(taken_ + to_skip_);
    input_.Save(position);
  }

  absl::Status Restore(Position& position) override {
    ended_ = position.Take() != 0;
    if (ended_) return absl::OkStatus();
    epoch_ = position.Take();
    window_ = position.Take();
    to_skip_ = position.Take();
    return input_.Restore(position);
  }

  std::optional<uint64_t> Count() override { return std::nullopt; }
  uint32_t width() const override { return dataset_.width(); }
  absl::Status status() const override { return status_; }

 private:
  // kSome: a window is open, at the next element.
  Pulled Open() {
    if (ended_) return Pulled::kEnd;
    if (!status_.ok()) return Pulled::kFailed;
    if (!dataset_.is_open()) {
      Pulled result = input_.Drop(&to_drop_);
      if (result == Pulled::kSome) result = input_.Fill((sizes_.size - 1) * sizes_.stride + 1);
      if (result == Pulled::kBlocked) return result;
      if (result == Pulled::kFailed) return Fail(input_.status());
      const uint64_t waiting = input_.waiting();
      const uint64_t size = std::min(sizes_.size, (waiting + sizes_.stride - 1) / sizes_.stride);
      if (size == 0 || (size < sizes_.size && sizes_.drop_remainder)) {
        ended_ = true;
        return Pulled::kEnd;
      }
      charge_.Add(size * input_.width() * sizeof(RecordRef));
      RecordList elements;
      elements.reserve(size * input_.width());
      for (uint64_t i = 0; i < size; ++i) {
        const RecordRef* const element = input_[i * sizes_.stride];
        elements.insert(elements.end(), element, element + input_.width());
      }
      context_.store.Share(elements);
      dataset_.Open(std::move(elements), epoch_, window_, scope_pass_);
    }
    if (to_skip_ > 0) {
      uint64_t skipped = 0;
      const Pulled result = dataset_.Skip(to_skip_, &skipped);
      to_skip_ -= skipped;
      taken_ += skipped;
      if (result == Pulled::kFailed) return Fail(dataset_.status());
      if (result == Pulled::kBlocked) return result;
      // A dataset that is shorter than the cursor said would be one of other files.
      to_skip_ = 0;
    }
    return Pulled::kSome;
  }

  void GoToNext() {
    dataset_.Close();
    charge_.Clear();
    ++window_;
    taken_ = 0;
    to_drop_ = sizes_.shift;
  }

  Pulled Fail(absl::Status status) {
    status_ = std::move(status);
    return Pulled::kFailed;
  }

  FrontContext& context_;
  const WindowSizes sizes_;
  AnchoredInput input_;  // from the window's first element on
  MemoryCharge charge_;  // of the window's references
  WindowDataset dataset_;
  uint64_t epoch_ = 0;
  uint64_t scope_pass_ = 0;  // FrontContext::scope_pass of this pass
  uint64_t window_ = 0;      // its number in this pass
  uint64_t taken_ = 0;       // elements of its dataset
  uint64_t to_skip_ = 0;     // elements of its dataset to leave out before the next one
  uint64_t to_drop_ = 0;     // elements of the input to leave out before the window
  bool ended_ = false;
  absl::Status status_;
};

absl::StatusOr<WindowSizes> ReadSizes(const v1::Window& options) {
  const int64_t shift = options.has_shift() ? options.shift() : options.size();
  const int64_t stride = options.has_stride() ? options.stride() : 1;
  const std::pair<const char*, int64_t> numbers[] = {
      {"size", options.size()}, {"shift", shift}, {"stride", stride}};
  for (const auto& [name, number] : numbers) {
    if (number >= 1 && number <= kMaxSpan) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected 1 to ", kMaxSpan, ", found ", number));
  }
  if (options.size() > kMaxSpan / stride) {
    return absl::InvalidArgumentError(absl::StrCat("size * stride: expected at most ", kMaxSpan,
                                                   ", found ", options.size(), " * ", stride));
  }
  WindowSizes sizes;
  sizes.size = static_cast<uint64_t>(options.size());
  sizes.shift = static_cast<uint64_t>(shift);
  sizes.stride = static_cast<uint64_t>(stride);
  sizes.drop_remainder = options.drop_remainder();
  return sizes;
}

const OpRegistration<v1::Window> kWindow(
    "window", {.nests_elements = true},
    [](const v1::Window& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<WindowSizes> sizes = ReadSizes(options);
      if (!sizes.ok()) return sizes.status();
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      // What is in several windows is computed once.
      const bool overlap = sizes->shift < sizes->size * sizes->stride;
      if (overlap && plan.is_computed()) plan.EndSectionAsIs();
      return plan.SetWindows(
          options.input(),
          [&](const OrderNode& nested, uint32_t) {
            return [&nested, sizes = *sizes](FrontContext& context, OrderInputs inputs) {
              return std::make_unique<WindowOp>(context, nested, sizes, std::move(inputs[0]));
            };
          },
          overlap ? PlanBuilder::WindowKind::kOverlapping : PlanBuilder::WindowKind::kApart);
    });

}  // namespace
}  // namespace penstock
