#include "server/engine/stage/state_order.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory_charge.h"
#include "server/engine/compute/row_evaluator.h"
#include "server/engine/order/replayed_order.h"
#include "server/engine/tensor/structure.h"

namespace penstock {
namespace {

constexpr uint64_t kPulledAtOnce = 64;

class StateOrderOp final : public ReplayedOrder {
 public:
  StateOrderOp(FrontContext& context, StateOptions options, std::unique_ptr<OrderOp> input)
      : ReplayedOrder(context),
        options_(std::move(options)),
        program_(*options_.program),
        input_(std::move(input)),
        cells_(context.store),
        state_(program_.initial()) {
    last_.file = options_.work->LowestFile();
  }

  std::optional<uint64_t> Count() override {
    if (options_.only_last) return 1;
    return options_.ignored ? std::nullopt : input_->Count();
  }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return status_.ok() ? input_->status() : status_; }

 protected:
  Pulled Take(uint64_t count, RecordList& out, uint64_t* taken) override {
    while (*taken < count) {
      if (!status_.ok()) return Pulled::kFailed;
      if (over_) return Pulled::kEnd;
      if (context().interrupted()) return Pulled::kBlocked;
      RecordList incoming;
      uint64_t pulled = 0;
      const Pulled result =
          input_->Pull(options_.only_last ? kPulledAtOnce : std::min(count - *taken, kPulledAtOnce),
                       incoming, &pulled);
      for (RecordRef& element : incoming) {
        const RecordRef before = element;
        path_ = options_.keeps_paths ? ElementCells::PackedPath(element) : 0;
        bool left_out = false;
        if (status_.ok()) status_ = Step(&element, &left_out);
        context().store.Release({&before, 1});
        if (!status_.ok() || left_out) continue;
        ++handed_on_;
        last_ = before;
        last_path_ = path_;
        if (options_.only_last) continue;
        out.push_back(element);
        ++*taken;
      }
      if (result == Pulled::kEnd && options_.ignored && status_.ok())
        status_ = options_.ignored->Check(left_out_, handed_on_, /*at_end=*/true);
      if (!status_.ok()) return Pulled::kFailed;
      if (result == Pulled::kEnd && options_.only_last) {
        over_ = true;
        status_ = EmitState(out);
        if (status_.ok()) ++*taken;
        continue;
      }
      if (result != Pulled::kSome) return result;
    }
    return Pulled::kSome;
  }

  void Begin(uint64_t epoch) override {
    state_ = program_.initial();
    last_ = RecordRef{};
    last_.file = options_.work->LowestFile();
    last_.epoch = epoch;
    last_path_ = 0;
    over_ = false;
    left_out_ = handed_on_ = 0;
    status_ = absl::OkStatus();
    cells_.Drain();
    input_->Restart(epoch);
  }

 private:
  // Computes what becomes of an element, and points the reference at it.
  absl::Status Step(RecordRef* element, bool* left_out) {
    arena_.Reset();
    std::vector<Column> in(options_.in->output().size());
    const RowStatus loaded =
        options_.in->Load({element, 1, 1}, context().files, absl::MakeSpan(in), arena_);
    if (!loaded.ok()) return loaded.status;
    std::vector<Column> out(program_.output().size());
    absl::Status status = program_.Run(in, &state_, absl::MakeSpan(out), arena_);
    if (status.ok()) ChargeState();
    if (!status.ok()) {
      const absl::Status staged(status.code(),
                                absl::StrCat("stage ", options_.stage, ": ", status.message()));
      if (options_.ignored && absl::IsDataLoss(status)) {
        *left_out = true;
        context().damage.Add(FailedPlace({element, 1}, *options_.work, context().files.manifest(),
                                         std::string(staged.message())));
        return options_.ignored->Check(++left_out_, handed_on_, /*at_end=*/false);
      }
      return WithElementAddress(staged, {element, 1}, *options_.work, context().files);
    }
    if (options_.only_last) return absl::OkStatus();
    return options_.out->Pack(out, 0, cells_, element, path_);
  }

  void ChargeState() {
    uint64_t bytes = 0;
    for (const std::string& tensor : state_) bytes += tensor.capacity();
    if (bytes <= state_bytes_) return;
    charge_.Add(bytes - state_bytes_);
    state_bytes_ = bytes;
  }

  absl::Status EmitState(RecordList& out) {
    arena_.Reset();
    RecordRef element = last_;
    absl::Status status =
        options_.out->Pack(program_.StateColumns(state_, arena_), 0, cells_, &element, last_path_);
    if (status.ok()) out.push_back(element);
    return status;
  }

  const StateOptions options_;
  const StateProgram& program_;
  const std::unique_ptr<OrderOp> input_;
  CellCache cells_;
  Arena arena_;
  StateProgram::State state_;
  MemoryCharge charge_;       // of the state
  uint64_t state_bytes_ = 0;  // of which the charge is
  uint64_t path_ = 0;         // of the element that is looked at; 0: its place's
  uint64_t last_path_ = 0;    // the same of `last_`
  RecordRef last_;            // the element that was looked at last
  uint64_t left_out_ = 0;     // in this pass
  uint64_t handed_on_ = 0;    // the same
  bool over_ = false;
  absl::Status status_;
};

absl::Status CheckStructure(const std::string& structure, const Signature& features) {
  if (structure.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<std::string>> paths = StructurePaths(structure);
  if (!paths.ok())
    return absl::InvalidArgumentError(absl::StrCat("structure: ", paths.status().message()));
  bool same = paths->size() == features.size();
  for (size_t i = 0; same && i < features.size(); ++i) same = (*paths)[i] == features[i].name;
  if (same) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("structure: expected one place for each of ",
                                                 SignatureToString(features),
                                                 ", under its name, found ", structure));
}

}  // namespace

std::unique_ptr<OrderOp> StateOrder(FrontContext& context, StateOptions options,
                                    std::unique_ptr<OrderOp> input) {
  return std::make_unique<StateOrderOp>(context, std::move(options), std::move(input));
}

absl::Status AddStateOrder(StateOptions options, const std::string& structure, PlanBuilder& plan) {
  const Signature& features =
      options.only_last ? options.program->state() : options.program->output();
  absl::Status status = CheckStructure(structure, features);
  if (!status.ok()) return status;
  plan.EndSectionAsIs();
  options.stage = plan.stage();
  options.ignored = plan.ignored();
  options.keeps_paths = plan.needs_paths();
  options.in = plan.cells();
  options.out = plan.BeginInFront(features, structure.empty() ? DictStructure(features) : structure,
                                  &options.work);
  if (options.keeps_paths) plan.ChangePaths();
  if (options.only_last) plan.SetEndless(false);
  plan.AddOrder(
      [options = std::move(options)](FrontContext& context, OrderInputs inputs) {
        return StateOrder(context, options, std::move(inputs[0]));
      },
      CursorClass::kReplayData);
  return absl::OkStatus();
}

}  // namespace penstock
