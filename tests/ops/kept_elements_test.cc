// What ops say of the elements that wait in them (OpTraits::keeps_elements) is true: it is counted,
// over the pipelines of the contract, what each op has taken of its inputs and not handed on.
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/v1/ops.pb.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/spec/op_traits.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"
#include "tests/ops/contract_files.h"
#include "tests/ops/contract_pipelines.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"

namespace penstock::test {
namespace {

// Of one op that runs. Elements that are left out by Skip() count on neither side.
struct Flow {
  int64_t refs_in = 0, refs_out = 0;
  int64_t elements_in = 0, elements_out = 0;
};

// Of all ops of one name. In an op that hands on what it takes, no element can wait.
struct Found {
  bool ran = false;
  // It has had, at rest, references that it had not handed on; or has left them out.
  bool held = false;
  // It has handed on more elements than it had taken.
  bool made = false;
  std::string pipeline;  // in which it held some
};
using FoundByStage = std::map<int, Found>;

// No element waits in them, but what they have found out of those before.
const std::set<std::string> kKeepWhatTheyFound = {"scan", "unique"};

// Counts what is pulled from an op.
class Counted : public OrderOp {
 public:
  explicit Counted(std::unique_ptr<OrderOp> op) : op_(std::move(op)) {}
  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    const auto refs = static_cast<int64_t>(out.size());
    const uint64_t before = *pulled;
    const Pulled result = op_->Pull(count, out, pulled);
    Took(static_cast<int64_t>(out.size()) - refs, static_cast<int64_t>(*pulled - before), result);
    return result;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override { return op_->Skip(count, skipped); }
  void Restart(uint64_t epoch) override { op_->Restart(epoch); }
  void Save(Position& position) const override { op_->Save(position); }
  absl::Status Restore(Position& position) override { return op_->Restore(position); }
  std::optional<uint64_t> Count() override { return op_->Count(); }
  std::optional<uint64_t> CountRows() override { return op_->CountRows(); }
  uint64_t pass() const override { return op_->pass(); }
  void BeginPass(uint64_t pass) override { op_->BeginPass(pass); }
  uint32_t width() const override { return op_->width(); }
  absl::Status status() const override { return op_->status(); }

 protected:
  virtual void Took(int64_t refs, int64_t elements, Pulled result) = 0;

 private:
  const std::unique_ptr<OrderOp> op_;
};

class CountedInput final : public Counted {
 public:
  CountedInput(std::unique_ptr<OrderOp> op, std::shared_ptr<Flow> flow)
      : Counted(std::move(op)), flow_(std::move(flow)) {}

 private:
  void Took(int64_t refs, int64_t elements, Pulled) override {
    flow_->refs_in += refs;
    flow_->elements_in += elements;
  }
  const std::shared_ptr<Flow> flow_;
};

class CountedOp final : public Counted {
 public:
  CountedOp(std::unique_ptr<OrderOp> op, std::shared_ptr<Flow> flow, Found& found)
      : Counted(std::move(op)), flow_(std::move(flow)), found_(found) {}

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    const Flow before = *flow_;
    const Pulled result = Counted::Skip(count, skipped);
    *flow_ = before;
    return result;
  }
  void Restart(uint64_t epoch) override {
    *flow_ = {};
    Counted::Restart(epoch);
  }

 private:
  void Took(int64_t refs, int64_t elements, Pulled result) override {
    flow_->refs_out += refs;
    flow_->elements_out += elements;
    if (result != Pulled::kSome) return;
    found_.ran = true;
    if (flow_->refs_in > flow_->refs_out) found_.held = true;
    if (flow_->elements_out > flow_->elements_in) found_.made = true;
  }
  const std::shared_ptr<Flow> flow_;
  Found& found_;
};

// Makes the ops of a plan, of which nobody else knows, count. Where a stage has several, as one
// that leaves out failures in front of itself, its last one counts.
void Count(OrderNode& node, bool is_last_of_stage, FoundByStage& found) {
  for (const std::unique_ptr<OrderNode>& input : node.inputs)
    Count(*input, input->stage != node.stage, found);
  if (node.nested != nullptr) Count(*node.nested, /*is_last_of_stage=*/true, found);
  if (!is_last_of_stage || node.inputs.empty()) return;
  node.make = [make = node.make, &of_op = found[node.stage]](FrontContext& context,
                                                             OrderInputs inputs) {
    const auto flow = std::make_shared<Flow>();
    for (std::unique_ptr<OrderOp>& input : inputs)
      input = std::make_unique<CountedInput>(std::move(input), flow);
    return std::make_unique<CountedOp>(make(context, std::move(inputs)), flow, of_op);
  };
}

// What the ops of all the contract's pipelines did.
std::map<std::string, Found> RunAll() {
  KeptFiles files;
  std::map<std::string, Found> by_op;
  for (const char* const text : kContractPipelines) {
    INFO(text);
    const auto plan = PlanText(files.Spec(text));
    REQUIRE(plan.ok());
    const auto& impl = static_cast<const PlanImpl&>(**plan);
    FoundByStage found;
    Count(const_cast<OrderNode&>(impl.order()), /*is_last_of_stage=*/true, found);
    RunPlan(*plan, {.workers = 1, .max_steps = 60});
    v1::PipelineSpec spec = impl.spec();
    const auto stages = AllStages(spec);
    for (const auto& [stage, of_stage] : found) {
      REQUIRE(static_cast<size_t>(stage) < stages.size());
      Found& of_op = by_op[OpField(*stages[stage])->name()];
      of_op.ran |= of_stage.ran;
      if (of_stage.held) of_op.pipeline = text;
      of_op.held |= of_stage.held;
      of_op.made |= of_stage.made;
    }
  }
  return by_op;
}

TEST_CASE("An op says that it keeps elements if it does, and only then") {
  const std::map<std::string, Found> found = RunAll();
  CHECK(found.size() > 20);
  const auto* const ops = v1::Stage::descriptor()->FindOneofByName("op");
  for (int i = 0; i < ops->field_count(); ++i) {
    const auto of_op = found.find(ops->field(i)->name());
    if (of_op == found.end() || !of_op->second.ran) continue;
    INFO(of_op->second.pipeline);
    INFO(of_op->first << (of_op->second.held ? " holds elements" : "")
                      << (of_op->second.made ? " makes elements" : ""));
    // Batches that are elements of what follows wait in a section of their own stage, of which
    // CheckPlanChange() knows without the op.
    if (TraitsOf(ops->field(i)).batch_size != 0) continue;
    if (of_op->second.held) {
      CHECK(TraitsOf(ops->field(i)).keeps_elements);
    } else if (!of_op->second.made && kKeepWhatTheyFound.count(of_op->first) == 0) {
      // .keeps_elements = false is missing in its registration.
      CHECK_FALSE(TraitsOf(ops->field(i)).keeps_elements);
    }
  }
}

}  // namespace
}  // namespace penstock::test
