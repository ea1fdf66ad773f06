#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/random.h"
#include "server/engine/op_registry.h"

namespace penstock {
namespace {

constexpr int64_t kMaxBufferSize = int64_t{1} << 31;

// A buffer of waiting records. Draw number i of an epoch picks the place whose record goes out
// i-th; the next input takes that place, and once the input is over the last place does. So the
// buffer's state is a function of the draws alone.
class ShuffleOp final : public ChainedOrderOp {
 public:
  ShuffleOp(FrontContext& context, std::unique_ptr<OrderOp> input, uint64_t buffer_size,
            uint64_t key, bool reshuffle)
      : ChainedOrderOp(std::move(input)),
        context_(context),
        buffer_size_(buffer_size),
        key_(key),
        reshuffle_(reshuffle),
        draws_(key, 0) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      // Input is wanted to fill the buffer, and then one record for each that goes out.
      const bool filling = buffer_.size() < buffer_size_;
      if (!input_over_) {
        uint64_t arrived = 0;
        incoming_.clear();
        const Pulled result = input().Pull(
            filling ? buffer_size_ - buffer_.size() : count - *pulled, incoming_, &arrived);
        for (const RecordRef& record : incoming_) {
          if (filling) {
            buffer_.push_back(record);
          } else {
            RecordRef& place = buffer_[draws_.Below(num_draws_++, buffer_.size())];
            out.push_back(std::exchange(place, record));
            ++*pulled;
          }
        }
        if (result == Pulled::kBlocked || result == Pulled::kFailed) return result;
        input_over_ = result == Pulled::kEnd;
        continue;
      }
      if (buffer_.empty()) return Pulled::kEnd;
      RecordRef& place = buffer_[draws_.Below(num_draws_++, buffer_.size())];
      out.push_back(std::exchange(place, buffer_.back()));
      buffer_.pop_back();
      ++*pulled;
    }
    return Pulled::kSome;
  }

  void Restart(uint64_t epoch) override {
    context_.store.Release(buffer_);
    buffer_.clear();
    input_over_ = false;
    num_draws_ = 0;
    draws_ = DrawSequence(key_, reshuffle_ ? epoch : 0);
    ChainedOrderOp::Restart(epoch);
  }

 private:
  FrontContext& context_;
  const uint64_t buffer_size_;
  const uint64_t key_;
  const bool reshuffle_;
  DrawSequence draws_;
  uint64_t num_draws_ = 0;
  RecordList buffer_;
  RecordList incoming_;
  bool input_over_ = false;
};

// A seed for a spec without one: 63 bits, so that it is a plain number in every language.
int64_t DrawSeed() {
  std::random_device device;
  return static_cast<int64_t>((uint64_t{device()} << 32 | device()) >> 1);
}

const OpRegistration<v1::Shuffle> kShuffle(
    "shuffle", [](const v1::Shuffle& options, PlanBuilder& plan) -> absl::Status {
      if (options.buffer_size() < 1 || options.buffer_size() >= kMaxBufferSize) {
        return absl::InvalidArgumentError(absl::StrCat(
            "buffer_size: expected 1 to ", kMaxBufferSize - 1, ", found ", options.buffer_size()));
      }
      if (plan.batched()) {
        return absl::InvalidArgumentError(
            "shuffles batches, which is not supported yet; put it before batch to shuffle their "
            "elements");
      }
      v1::Shuffle& resolved = *plan.stage_spec().mutable_shuffle();
      if (!resolved.has_seed()) resolved.set_seed(DrawSeed());
      const uint64_t key = MixKey(static_cast<uint64_t>(resolved.seed()), plan.stage());
      const bool reshuffle =
          !options.has_reshuffle_each_iteration() || options.reshuffle_each_iteration();
      plan.AddOrder([buffer_size = options.buffer_size(), key, reshuffle](
                        FrontContext& context, std::unique_ptr<OrderOp> input) {
        return std::make_unique<ShuffleOp>(context, std::move(input), buffer_size, key, reshuffle);
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
