#include "server/engine/run/front.h"

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory_account.h"

namespace penstock {
namespace {

// What an op of the order found no memory for.
struct FrontMemoryError final : std::bad_alloc {
  FrontMemoryError(int of_stage, absl::Status why) : stage(of_stage), status(std::move(why)) {}
  int stage;
  absl::Status status;
};

// Charges an op's time, but for its input's, to its stage; the stage's last op counts what leaves
// it.
class MeasuredOrderOp final : public OrderOp {
 public:
  MeasuredOrderOp(std::unique_ptr<OrderOp> op, int stage, bool counts, StageClock* const& clock)
      : op_(std::move(op)), stage_(stage), counts_(counts), clock_(clock) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    StageClock::Scope scope(*clock_, stage_);
    const uint64_t before = *pulled;
    const Pulled result = InStage([&] { return op_->Pull(count, out, pulled); });
    if (counts_) clock_->Count(stage_, *pulled - before);
    return result;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    StageClock::Scope scope(*clock_, stage_);
    return InStage([&] { return op_->Skip(count, skipped); });
  }
  void Restart(uint64_t epoch) override { op_->Restart(epoch); }
  void Save(Position& position) const override { op_->Save(position); }
  absl::Status Restore(Position& position) override { return op_->Restore(position); }
  std::optional<uint64_t> Count() override { return op_->Count(); }
  std::optional<uint64_t> CountRows() override { return op_->CountRows(); }
  uint64_t pass() const override { return op_->pass(); }
  void BeginPass(uint64_t pass) override { op_->BeginPass(pass); }
  uint32_t width() const override { return op_->width(); }
  absl::Status status() const override { return op_->status(); }

 private:
  // Where the op has no memory, its stage is told, and not that of one behind it.
  template <typename Call>
  Pulled InStage(const Call& call) const {
    try {
      return call();
    } catch (const FrontMemoryError&) {
      throw;
    } catch (const MemoryLimitError& error) {
      throw FrontMemoryError(stage_, MemoryStatus(error));
    }
  }

  const std::unique_ptr<OrderOp> op_;
  const int stage_;
  const bool counts_;
  StageClock* const& clock_;  // changes with the worker that runs the front
};

std::unique_ptr<OrderOp> MakeMeasured(const OrderNode& node, bool is_last_of_stage,
                                      FrontContext& context) {
  OrderInputs inputs;
  for (const std::unique_ptr<OrderNode>& input : node.inputs)
    inputs.push_back(MakeMeasured(*input, input->stage != node.stage, context));
  return std::make_unique<MeasuredOrderOp>(node.make(context, std::move(inputs)), node.stage,
                                           is_last_of_stage, context.clock);
}

}  // namespace

std::unique_ptr<OrderOp> MakeOrder(const OrderNode& node, FrontContext& context) {
  return MakeMeasured(node, /*is_last_of_stage=*/true, context);
}

Front::Front(const PlanImpl& plan, FileTable& files, RecordStore& store, ReadQueue& reads,
             SectionQueue& sections, DamageLog& damage, const std::atomic<bool>& cancelled,
             KeptGauge* gauges, const std::atomic<int>* waiting, Errands* errands, PackGauge* packs)
    : width_(plan.width()),
      stage_names_(plan.stage_names()),
      // Complete before there are ops: those of nested datasets have a copy.
      context_{.files = files,
               .store = store,
               .reads = reads,
               .sections = sections,
               .damage = damage,
               .cancelled = cancelled,
               .ahead = ahead_,
               .clock = clock_,
               .gauges = gauges,
               .errands = errands,
               .waiting = waiting,
               .packs = packs},
      last_(MakeOrder(plan.order(), context_)) {}

absl::Status Front::Restore(Position position) {
  if (absl::Status status = last_->Restore(position); !status.ok()) return status;
  if (position.complete()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a position of this pipeline: it has ",
                                                 position.counters().size(), " counters"));
}

template <typename Call>
Pulled Front::Within(const Call& call) {
  if (!no_memory_.ok()) return Pulled::kFailed;
  try {
    return call();
  } catch (const FrontMemoryError& error) {
    no_memory_ = absl::Status(error.status.code(), absl::StrCat("stage ", stage_names_[error.stage],
                                                                ": ", error.status.message()));
  }
  return Pulled::kFailed;
}

Pulled Front::Skip(uint64_t count, uint64_t* skipped) {
  return Within([&] { return last_->Skip(count, skipped); });
}

Pulled Front::Assemble(Step* step) {
  uint64_t pulled = 0;
  const Pulled result = Within([&] { return last_->Pull(1, step->records, &pulled); });
  if (result == Pulled::kSome) {
    step->info.epoch = step->records.front().epoch;
    step->info.rows = step->records.size() / width_;
    step->position.Clear();
    last_->Save(step->position);
  } else if (result != Pulled::kBlocked) {
    Release(step);
  }
  return result;
}

absl::Status Front::status() const { return no_memory_.ok() ? last_->status() : no_memory_; }

void Front::KeepRows(RowSpan rows, Step* step) {
  RecordList& records = step->records;
  const size_t begin = size_t{rows.first} * width_;
  const size_t end = begin + size_t{rows.count} * width_;
  const auto all = absl::MakeConstSpan(records);
  context_.store.Release(all.subspan(end));
  context_.store.Release(all.first(begin));
  records.resize(end);
  records.erase(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(begin));
}

void Front::Release(Step* step) {
  context_.store.Release(step->records);
  step->records.clear();
}

}  // namespace penstock
