#include "server/engine/order/counted_order.h"

#include <algorithm>
#include <memory>

#include "base/permutation.h"

namespace penstock {
namespace {

// Its position: how many elements have been taken and, where they are permuted, before it the pass.
class CountedOrderOp final : public OrderOp {
 public:
  CountedOrderOp(const CountedElements& elements, std::optional<CountedShuffle> shuffle)
      : elements_(elements), shuffle_(shuffle) {
    Restart(0);
  }

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (*pulled >= count) return Pulled::kSome;
    const uint64_t taken = std::min(count - *pulled, elements_.count - next_);
    if (order_) {
      const Permutation& order = *order_;
      Deal(
          taken, [&order](uint64_t place) { return order(place); }, out);
    } else {
      Deal(
          taken, [](uint64_t place) { return place; }, out);
    }
    next_ += taken;
    *pulled += taken;
    return *pulled == count ? Pulled::kSome : Pulled::kEnd;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    const uint64_t left_out = std::min(count - *skipped, elements_.count - next_);
    next_ += left_out;
    *skipped += left_out;
    return *skipped == count ? Pulled::kSome : Pulled::kEnd;
  }

  void Restart(uint64_t epoch) override {
    epoch_ = epoch;
    next_ = 0;
    if (shuffle_ && elements_.count > 0)
      order_.emplace(elements_.count, shuffle_->key, shuffle_->reshuffle ? epoch : 0);
  }

  void Save(Position& position) const override {
    if (shuffle_) position.Add(epoch_);
    position.Add(next_);
  }

  absl::Status Restore(Position& position) override {
    Restart(shuffle_ ? position.Take() : 0);
    next_ = std::min(position.Take(), elements_.count);
    return absl::OkStatus();
  }

  std::optional<uint64_t> Count() override { return elements_.count; }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  // The references of `count` elements from the next one on.
  template <typename Order>
  void Deal(uint64_t count, const Order& order, RecordList& out) const {
    const CountedElements elements = elements_;
    const uint64_t first = next_;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t number = order(first + i);
      out.push_back({nullptr, elements.start + number * elements.step, 0,
                     elements.first_file + static_cast<uint32_t>(number) * elements.file_step, 0});
    }
  }

  const CountedElements elements_;
  const std::optional<CountedShuffle> shuffle_;
  std::optional<Permutation> order_;  // of this pass
  uint64_t epoch_ = 0;
  uint64_t next_ = 0;
};

}  // namespace

OrderFactory CountedOrder(const CountedElements& elements, std::optional<CountedShuffle> shuffle) {
  return [elements, shuffle](FrontContext&, OrderInputs) {
    return std::make_unique<CountedOrderOp>(elements, shuffle);
  };
}

}  // namespace penstock
