#include "server/engine/order/window_order.h"

#include <algorithm>

namespace penstock {
namespace {

class WindowOrder final : public OrderOp {
 public:
  WindowOrder(FrontContext& context, uint32_t width) : context_(context), width_(width) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    const uint64_t taken = std::min(count - *pulled, size() - next_);
    const auto elements =
        absl::MakeConstSpan(*context_.window).subspan(next_ * width_, taken * width_);
    context_.store.Share(elements);
    out.insert(out.end(), elements.begin(), elements.end());
    next_ += taken;
    *pulled += taken;
    return *pulled == count ? Pulled::kSome : Pulled::kEnd;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    const uint64_t left_out = std::min(count - *skipped, size() - next_);
    next_ += left_out;
    *skipped += left_out;
    return *skipped == count ? Pulled::kSome : Pulled::kEnd;
  }
  void Restart(uint64_t) override { next_ = 0; }
  void Save(Position& position) const override { position.Add(next_); }
  absl::Status Restore(Position& position) override {
    next_ = std::min(position.Take(), size());
    return absl::OkStatus();
  }
  std::optional<uint64_t> Count() override { return size(); }
  uint32_t width() const override { return width_; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  uint64_t size() const { return context_.window->size() / width_; }

  FrontContext& context_;
  const uint32_t width_;
  uint64_t next_ = 0;
};

}  // namespace

std::unique_ptr<OrderOp> MakeWindowOrder(FrontContext& context, uint32_t width) {
  return std::make_unique<WindowOrder>(context, width);
}

}  // namespace penstock
