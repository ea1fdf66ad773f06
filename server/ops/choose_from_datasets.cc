#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/order/directed_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/read/element_cells.h"
#include "server/engine/section/like_elements.h"

namespace penstock {
namespace {

// The elements of a dataset of numbers, in cells. Its position is that dataset's.
class NumberChooser final : public Chooser {
 public:
  NumberChooser(FrontContext& context, std::string stage, std::unique_ptr<OrderOp> numbers,
                const ElementCells* cells, size_t num_inputs)
      : context_(context),
        stage_(std::move(stage)),
        cells_(cells),
        numbers_(std::move(numbers)),
        num_inputs_(num_inputs) {}

  Pulled Next(const std::vector<bool>&, uint64_t* input) override {
    RecordList element;
    uint64_t pulled = 0;
    const Pulled result = numbers_->Pull(1, element, &pulled);
    if (result == Pulled::kFailed) status_ = numbers_->status();
    if (result != Pulled::kSome) return result;
    const absl::StatusOr<std::string> value = cells_->Value(element.front(), 0);
    context_.store.Release(element);
    if (!value.ok()) {
      status_ = InStage(value.status());
      return Pulled::kFailed;
    }
    int64_t number = 0;
    std::memcpy(&number, value->data(), sizeof(number));
    if (number < 0 || static_cast<uint64_t>(number) >= num_inputs_) {
      status_ = InStage(absl::InvalidArgumentError(
          absl::StrCat("expected a choice from 0 to ", num_inputs_ - 1, ", found ", number)));
      return Pulled::kFailed;
    }
    *input = static_cast<uint64_t>(number);
    return Pulled::kSome;
  }

  void Restart(uint64_t epoch) override {
    status_ = absl::OkStatus();
    numbers_->Restart(epoch);
  }
  void Save(Position& position) const override { numbers_->Save(position); }
  absl::Status Restore(Position& position) override { return numbers_->Restore(position); }
  absl::Status status() const override { return status_; }

 private:
  absl::Status InStage(const absl::Status& status) const {
    return absl::Status(status.code(), absl::StrCat("stage ", stage_, ": ", status.message()));
  }

  FrontContext& context_;
  const std::string stage_;
  const ElementCells* const cells_;
  const std::unique_ptr<OrderOp> numbers_;
  const size_t num_inputs_;
  absl::Status status_;
};

const OpRegistration<v1::ChooseFromDatasets> kChooseFromDatasets(
    "choose_from_datasets", {.counts_failures = true},
    [](const v1::ChooseFromDatasets& options, PlanBuilder& plan) -> absl::Status {
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      if (plan.structure() != "null" ||
          plan.signature().front().type != TensorType{DType::kInt64, {}}) {
        return absl::InvalidArgumentError(
            absl::StrCat("expected choices that are one int64 () each, found ",
                         SignatureToString(plan.signature())));
      }
      plan.EndSectionAsIs();
      const ElementCells* const cells = plan.cells();
      Dataset choices = plan.TakeDataset();
      absl::StatusOr<std::vector<Dataset>> inputs = plan.BuildInputs(options.input());
      if (!inputs.ok()) return inputs.status();
      if (absl::Status status = MakeAlike(plan.stage_index(), &*inputs); !status.ok())
        return status;
      const bool stop = !options.has_stop_on_empty_dataset() || options.stop_on_empty_dataset();
      // It ends with the choices, and where it stops with the first input that does.
      const auto endless = [](const Dataset& input) { return input.endless; };
      const bool never_ends =
          choices.endless && (stop ? std::all_of(inputs->begin(), inputs->end(), endless)
                                   : std::any_of(inputs->begin(), inputs->end(), endless));
      plan.SetBranches(
          *std::move(inputs),
          [stop, cells, stage = plan.stage()](FrontContext& context, OrderInputs inputs) {
            auto chooser = std::make_unique<NumberChooser>(context, stage, std::move(inputs[0]),
                                                           cells, inputs.size() - 1);
            inputs.erase(inputs.begin());
            return DirectedOrder(context, std::move(chooser), std::move(inputs), stop);
          },
          std::move(choices));
      plan.SetEndless(never_ends);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
