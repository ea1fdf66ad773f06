#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/op_registry.h"

namespace penstock {
namespace {

constexpr int64_t kMaxBatchSize = int64_t{1} << 24;

// Groups consecutive elements. An element of its output is the references of one batch. Between two of them it has no position of
// its own.
class BatchOp final : public ChainedOrderOp {
 public:
  BatchOp(FrontContext& context, std::unique_ptr<OrderOp> input, uint64_t batch_size,
          bool drop_remainder)
      : ChainedOrderOp(std::move(input)),
        context_(context),
        batch_size_(batch_size),
        drop_remainder_(drop_remainder) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      const Pulled result = input().Pull(batch_size_, out, &rows_);
      if (result == Pulled::kBlocked || result == Pulled::kFailed) return result;
      if (result == Pulled::kEnd) {
        if (rows_ == 0) return Pulled::kEnd;
        if (drop_remainder_) {
          const size_t kept = out.size() - rows_ * width();
          context_.store.Release(absl::MakeConstSpan(out).subspan(kept));
          out.resize(kept);
          rows_ = 0;
          return Pulled::kEnd;
        }
      }
      rows_ = 0;
      ++*pulled;
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    // rows_ counts what is left out of the batches that are still to be skipped.
    const uint64_t batches = count - *skipped;
    const uint64_t most = UINT64_MAX / batch_size_;
    const uint64_t rows = std::min(batches, most) * batch_size_;
    const Pulled result = input().Skip(rows, &rows_);
    if (result == Pulled::kBlocked) {
      *skipped += rows_ / batch_size_;
      rows_ %= batch_size_;
      return result;
    }
    uint64_t whole = rows_ / batch_size_;
    if (rows_ % batch_size_ != 0 && !drop_remainder_) ++whole;
    rows_ = 0;
    *skipped += whole;
    return *skipped == count ? Pulled::kSome : result;
  }

  void Restart(uint64_t epoch) override {
    rows_ = 0;
    ChainedOrderOp::Restart(epoch);
  }

  std::optional<uint64_t> Count() override {
    const std::optional<uint64_t> count = input().Count();
    if (!count || *count == kEndless) return count;
    return *count / batch_size_ + (!drop_remainder_ && *count % batch_size_ != 0 ? 1 : 0);
  }

 private:
  FrontContext& context_;
  const uint64_t batch_size_;
  const bool drop_remainder_;
  uint64_t rows_ = 0;  // of the batch that is being filled
};

const OpRegistration<v1::Batch> kBatch(
    "batch", [](const v1::Batch& options, PlanBuilder& plan) -> absl::Status {
      if (options.batch_size() < 1 || options.batch_size() > kMaxBatchSize) {
        return absl::InvalidArgumentError(absl::StrCat("batch_size: expected 1 to ", kMaxBatchSize,
                                                       ", found ", options.batch_size()));
      }
      if (plan.batched())
        return absl::InvalidArgumentError(
            "batches of batches are not supported yet; expected one batch in a pipeline, found a "
            "second");
      plan.SetBatch(options.batch_size(), options.drop_remainder());
      plan.AddOrder([options](FrontContext& context, OrderInputs inputs) {
        return std::make_unique<BatchOp>(context, std::move(inputs[0]), options.batch_size(),
                                         options.drop_remainder());
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
