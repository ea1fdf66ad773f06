#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory_charge.h"
#include "server/engine/order/replayed_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/read/element_cells.h"

namespace penstock {
namespace {

constexpr uint64_t kMaxSeenBytes = uint64_t{1} << 30;
// What a set adds to each of its strings, about.
constexpr uint64_t kEntryBytes = 64;
constexpr uint64_t kChargedAtOnce = uint64_t{1} << 20;

// Hands on elements whose value has not been seen in this pass.
class UniqueOp final : public ReplayedOrder {
 public:
  UniqueOp(FrontContext& context, std::string stage, const ElementCells* cells,
           std::unique_ptr<OrderOp> input)
      : ReplayedOrder(context), stage_(std::move(stage)), cells_(cells), input_(std::move(input)) {}

  std::optional<uint64_t> Count() override { return std::nullopt; }
  uint32_t width() const override { return input_->width(); }
  absl::Status status() const override { return status_.ok() ? input_->status() : status_; }

 protected:
  Pulled Take(uint64_t count, RecordList& out, uint64_t* taken) override {
    while (*taken < count) {
      if (!status_.ok()) return Pulled::kFailed;
      if (context().interrupted()) return Pulled::kBlocked;
      incoming_.clear();
      uint64_t pulled = 0;
      const Pulled result = input_->Pull(count - *taken, incoming_, &pulled);
      for (size_t i = 0; i < incoming_.size(); ++i) {
        absl::StatusOr<std::string> value = cells_->Value(incoming_[i], 0);
        if (!value.ok()) {
          context().store.Release(absl::MakeConstSpan(incoming_).subspan(i));
          status_ = absl::Status(value.status().code(),
                                 absl::StrCat("stage ", stage_, ": ", value.status().message()));
          return Pulled::kFailed;
        }
        const uint64_t bytes = value->size() + kEntryBytes;
        if (!seen_.insert(*std::move(value)).second) {
          context().store.Release({&incoming_[i], 1});
          continue;
        }
        out.push_back(incoming_[i]);
        ++*taken;
        seen_bytes_ += bytes;
        if (seen_bytes_ > charged_bytes_) {
          charge_.Add(kChargedAtOnce);
          charged_bytes_ += kChargedAtOnce;
        }
        if (seen_bytes_ <= kMaxSeenBytes) continue;
        context().store.Release(absl::MakeConstSpan(incoming_).subspan(i + 1));
        status_ = absl::ResourceExhaustedError(absl::StrCat(
            "stage ", stage_, ": more different values than it may keep: ", seen_bytes_, " > ",
            kMaxSeenBytes, " bytes"));
        return Pulled::kFailed;
      }
      if (result != Pulled::kSome) return result;
    }
    return Pulled::kSome;
  }

  void Begin(uint64_t epoch) override {
    seen_.clear();
    seen_bytes_ = charged_bytes_ = 0;
    charge_.Clear();
    status_ = absl::OkStatus();
    input_->Restart(epoch);
  }

 private:
  const std::string stage_;
  const ElementCells* const cells_;
  const std::unique_ptr<OrderOp> input_;
  std::unordered_set<std::string> seen_;
  MemoryCharge charge_;  // of what was seen
  uint64_t seen_bytes_ = 0;
  uint64_t charged_bytes_ = 0;
  RecordList incoming_;
  absl::Status status_;
};

const OpRegistration<v1::Unique> kUnique(
    "unique", {}, [](const v1::Unique&, PlanBuilder& plan) -> absl::Status {
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      const DType dtype = plan.signature().front().type.dtype;
      if (plan.signature().size() != 1 ||
          (dtype != DType::kInt32 && dtype != DType::kInt64 && dtype != DType::kString)) {
        return absl::InvalidArgumentError(
            absl::StrCat("expected one tensor of int32, int64 or string, found ",
                         SignatureToString(plan.signature())));
      }
      plan.EndSectionAsIs();
      plan.AddOrder(
          [stage = plan.stage(), cells = plan.cells()](FrontContext& context, OrderInputs inputs) {
            return std::make_unique<UniqueOp>(context, stage, cells, std::move(inputs[0]));
          },
          CursorClass::kReplayData);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
