#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/counter_loader.h"
#include "server/engine/op_registry.h"

namespace penstock {
namespace {

// Its position: how many numbers have been taken.
class RangeOp final : public OrderOp {
 public:
  RangeOp(int64_t start, int64_t step, uint64_t count, uint32_t file)
      : start_(start), step_(step), count_(count), file_(file) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (; *pulled < count; ++*pulled, ++next_) {
      if (next_ == count_) return Pulled::kEnd;
      // Modulo 2^64, in which no partial result overflows.
      const uint64_t value = static_cast<uint64_t>(start_) + next_ * static_cast<uint64_t>(step_);
      out.push_back({nullptr, value, 0, file_, 0});
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    const uint64_t left_out = std::min(count - *skipped, count_ - next_);
    next_ += left_out;
    *skipped += left_out;
    return *skipped == count ? Pulled::kSome : Pulled::kEnd;
  }

  void Restart(uint64_t) override { next_ = 0; }
  void Save(Position& position) const override { position.Add(next_); }
  absl::Status Restore(Position& position) override {
    next_ = std::min(position.Take(), count_);
    return absl::OkStatus();
  }
  std::optional<uint64_t> Count() override { return count_; }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  const int64_t start_;
  const int64_t step_;
  const uint64_t count_;
  const uint32_t file_;
  uint64_t next_ = 0;
};

// How many numbers there are from `start` to before `stop`.
uint64_t RangeSize(int64_t start, int64_t stop, int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride =
      step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  return (distance - 1) / stride + 1;
}

const OpRegistration<v1::Range> kRange(
    "range",
    [](const v1::Range& options, PlanBuilder& plan) -> absl::Status {
      const int64_t step = options.has_step() ? options.step() : 1;
      if (step == 0) return absl::InvalidArgumentError("step: expected any number but 0, found 0");
      const FileRange files = plan.AddFiles({FileEntry{}});
      plan.SetSource(
          std::make_unique<CounterLoader>(), files,
          [start = options.start(), step, count = RangeSize(options.start(), options.stop(), step),
           file = files.first](FrontContext&, OrderInputs) {
            return std::make_unique<RangeOp>(start, step, count, file);
          });
      return absl::OkStatus();
    },
    OpPlace::kSource);

}  // namespace
}  // namespace penstock
