#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/row_shape.h"
#include "server/engine/order/counted_order.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

// Adds a feature that is true.
class AddTrue final : public WorkOp {
 public:
  explicit AddTrue(Signature output) : output_(std::move(output)) {}
  const Signature& output() const override { return output_; }
  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    std::copy(in.begin(), in.end(), out.begin());
    Column& mask = out.back();
    mask.row_bytes = 1;
    if (mask.data == nullptr) mask.data = arena.Allocate(rows);
    std::memset(mask.data, 1, rows);
    return {};
  }

 private:
  const Signature output_;
};

// Elements of zeros and empty strings; sizes that only the data tells are 0.
class ZeroLoader final : public ColumnLoader {
 public:
  explicit ZeroLoader(Signature output) : output_(std::move(output)) {}
  const Signature& output() const override { return output_; }
  bool is_dict() const override { return true; }
  RowStatus Load(RowReferences rows, FileTable&, absl::Span<Column> out,
                 Arena& arena) const override {
    for (size_t i = 0; i < output_.size(); ++i) {
      const TensorType& type = output_[i].type;
      Shape shape = type.shape;
      for (int64_t& size : shape) size = std::max<int64_t>(size, 0);
      const size_t element_bytes = type.dtype != DType::kString ? DTypeSize(type.dtype)
                                   : shape.empty()              ? 0
                                                                : sizeof(uint32_t);
      const size_t bytes = NumElements(shape).value_or(0) * element_bytes;
      uint8_t* const zeros = arena.Allocate(bytes);
      std::memset(zeros, 0, bytes);
      auto* const values = arena.AllocateArray<RowBytes>(rows.rows);
      std::fill_n(values, rows.rows, RowBytes{zeros, bytes});
      out[i] = Column{};
      out[i].rows = values;
      if (!HasUnknownAxes(type.shape)) continue;
      auto* const dims = arena.AllocateArray<int64_t>(rows.rows * shape.size());
      for (uint32_t row = 0; row < rows.rows; ++row)
        std::copy(shape.begin(), shape.end(), dims + row * shape.size());
      out[i].dims = dims;
    }
    return {};
  }

 private:
  const Signature output_;
};

// The elements of the first input, and then those of the second one up to a number of both. Its
// position: how many have been taken, and that of the input whose turn it is.
class PadOp final : public OrderOp {
 public:
  PadOp(FrontContext& context, std::string stage, uint64_t cardinality, OrderInputs inputs)
      : context_(context),
        stage_(std::move(stage)),
        cardinality_(cardinality),
        elements_(std::move(inputs[0])),
        padding_(std::move(inputs[1])) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (!status_.ok()) return Pulled::kFailed;
    const uint64_t before = *pulled;
    const uint64_t target = before + std::min(count - before, cardinality_ - taken_);
    Pulled result = Pulled::kSome;
    if (!pads_) {
      if (target > before) result = elements_->Pull(target, out, pulled);
      taken_ += *pulled - before;
      if (result == Pulled::kSome && *pulled < count) result = LookBeyond();
      if (result != Pulled::kEnd) return result;
      pads_ = true;
    }
    const uint64_t elements = *pulled;
    if (target > elements) PullPadding(target - elements, out);
    taken_ += target - elements;
    *pulled = target;
    return target == count ? Pulled::kSome : Pulled::kEnd;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    return SkipByPulling(*this, context_, count, skipped);
  }

  void Restart(uint64_t epoch) override {
    context_.store.Release(beyond_);
    beyond_.clear();
    elements_->Restart(epoch);
    padding_->Restart(epoch);
    taken_ = 0;
    pads_ = false;
    status_ = absl::OkStatus();
  }
  void Save(Position& position) const override {
    position.Add(taken_);
    position.Add(pads_);
    if (!pads_) elements_->Save(position);
  }
  absl::Status Restore(Position& position) override {
    taken_ = std::min(position.Take(), cardinality_);
    pads_ = position.Take() != 0;
    return pads_ ? absl::OkStatus() : elements_->Restore(position);
  }
  std::optional<uint64_t> Count() override { return cardinality_; }
  uint32_t width() const override { return elements_->width(); }
  absl::Status status() const override { return status_.ok() ? elements_->status() : status_; }

 private:
  // Elements of padding are all alike; further references of one are not looked at.
  void PullPadding(uint64_t count, RecordList& out) {
    uint64_t pulled = 0;
    RecordList incoming;
    padding_->Restart(0);
    padding_->Pull(1, incoming, &pulled);
    // By its place each is one of its own to what draws.
    incoming.front().offset = taken_;
    for (; count > 0; --count, ++incoming.front().offset) {
      out.push_back(incoming.front());
      PadElement(width() - 1, out);
    }
  }

  Pulled LookBeyond() {
    uint64_t more = 0;
    const Pulled result = elements_->Pull(1, beyond_, &more);
    if (result != Pulled::kSome) return result;
    context_.store.Release(beyond_);
    beyond_.clear();
    status_ = absl::FailedPreconditionError(absl::StrCat("stage ", stage_, ": expected at most ",
                                                         cardinality_, " elements, found more"));
    return Pulled::kFailed;
  }

  FrontContext& context_;
  const std::string stage_;
  const uint64_t cardinality_;
  const std::unique_ptr<OrderOp> elements_;
  const std::unique_ptr<OrderOp> padding_;
  uint64_t taken_ = 0;
  bool pads_ = false;
  RecordList beyond_;
  absl::Status status_;
};

const OpRegistration<v1::PadToCardinality> kPadToCardinality(
    "pad_to_cardinality", {.counts_failures = true},
    [](const v1::PadToCardinality& options, PlanBuilder& plan) -> absl::Status {
      if (options.cardinality() < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("cardinality: expected at least 0, found ", options.cardinality()));
      }
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      const Feature mask{options.has_mask_key() ? options.mask_key() : "valid", {DType::kBool, {}}};
      std::string structure = plan.structure();
      if (structure.front() != '{') {
        return absl::InvalidArgumentError(absl::StrCat("expected elements that are dicts, found ",
                                                       SignatureToString(plan.signature())));
      }
      Signature output = plan.signature();
      for (const Feature& feature : output) {
        if (feature.type.packed()) {
          return absl::InvalidArgumentError(
              absl::StrCat("expected features that may be zero, found \"", feature.name, "\" ",
                           TypeToString(feature.type)));
        }
        if (feature.name != mask.name) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "mask_key: expected a name that no feature has, found \"", mask.name, "\""));
      }
      output.push_back(mask);
      structure.pop_back();
      absl::StrAppend(&structure, ",", DictStructure({mask}).substr(1));

      plan.AddWork(std::make_unique<AddTrue>(output), structure);
      std::vector<Dataset> inputs;
      inputs.push_back(plan.TakeDataset());
      const FileRange files = plan.AddFiles({FileEntry{}});
      CountedElements one;
      one.count = 1;
      one.first_file = files.first;
      inputs.push_back(
          plan.MakeLeaf(std::make_unique<ZeroLoader>(std::move(output)), files, CountedOrder(one)));
      inputs.back().structure = structure;
      plan.SetBranches(
          std::move(inputs), [cardinality = static_cast<uint64_t>(options.cardinality()),
                              stage = plan.stage()](FrontContext& context, OrderInputs inputs) {
            return std::make_unique<PadOp>(context, stage, cardinality, std::move(inputs));
          });
      plan.ChangePaths();
      plan.SetEndless(false);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
