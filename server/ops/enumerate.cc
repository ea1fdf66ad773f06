#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/read/counter_loader.h"

namespace penstock {
namespace {

// Puts a reference that holds its number before each element. Its position: the next number, and
// its input's.
class EnumerateOp final : public ChainedOrderOp {
 public:
  EnumerateOp(std::unique_ptr<OrderOp> input, uint64_t start, uint32_t file)
      : ChainedOrderOp(std::move(input)), start_(start), file_(file), next_(start) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    uint64_t arrived = 0;
    incoming_.clear();
    const Pulled result = input().Pull(count - *pulled, incoming_, &arrived);
    const uint32_t width = input().width();
    for (uint64_t i = 0; i < arrived; ++i) {
      // Whoever looks for the pass of an element looks at its first reference.
      out.push_back({nullptr, next_++, 0, file_, incoming_[i * width].epoch});
      out.insert(out.end(), incoming_.begin() + i * width, incoming_.begin() + (i + 1) * width);
    }
    *pulled += arrived;
    return result;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    const uint64_t before = *skipped;
    const Pulled result = input().Skip(count, skipped);
    next_ += *skipped - before;
    return result;
  }

  void Restart(uint64_t epoch) override {
    next_ = start_;
    ChainedOrderOp::Restart(epoch);
  }
  void Save(Position& position) const override {
    position.Add(next_);
    ChainedOrderOp::Save(position);
  }
  absl::Status Restore(Position& position) override {
    next_ = position.Take();
    return ChainedOrderOp::Restore(position);
  }
  uint32_t width() const override { return input().width() + 1; }

 private:
  const uint64_t start_;
  const uint32_t file_;
  uint64_t next_;
  RecordList incoming_;
};

const OpRegistration<v1::Enumerate> kEnumerate(
    "enumerate", {.gives = Given::kOneEach, .keeps_elements = false, .counts_failures = true},
    [](const v1::Enumerate& options, PlanBuilder& plan) -> absl::Status {
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      const FileRange files = plan.AddFiles({FileEntry{}});
      std::vector<Dataset> inputs;
      inputs.push_back(plan.MakeLeaf(std::make_unique<CounterLoader>(), files, nullptr));
      inputs.push_back(plan.TakeDataset());
      plan.SetTuple(std::move(inputs), [start = static_cast<uint64_t>(options.start()),
                                        file = files.first](FrontContext&, OrderInputs inputs) {
        return std::make_unique<EnumerateOp>(std::move(inputs[0]), start, file);
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
