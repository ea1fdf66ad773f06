#include "server/engine/run/step_count.h"

#include "absl/strings/str_cat.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/run/front.h"
#include "server/engine/spec/op_traits.h"

namespace penstock {
namespace {

const v1::Stage* FindStage(const PlanImpl& plan, const OrderNode& node) {
  const std::string& name = plan.stage_names()[node.stage];
  for (const v1::Stage& stage : plan.spec().stage()) {
    if (stage.name() == name) return &stage;
  }
  return nullptr;
}

// The node whose elements are batches of one size, where all that follows it repeats whole passes,
// or takes the first of their steps.
const OrderNode* FindPass(const PlanImpl& plan) {
  bool repeats = false;
  for (const OrderNode* node = &plan.order(); node->inputs.size() == 1;
       node = node->inputs[0].get()) {
    const v1::Stage* stage = FindStage(plan, *node);
    if (stage == nullptr) return nullptr;
    const OpTraits& traits = TraitsOf(*stage);
    if (traits.batch_size != 0) {
      return plan.program().batched() && plan.program().form().stage == node->stage ? node
                                                                                    : nullptr;
    }
    if (traits.passes != 0) {
      repeats = true;
    } else if (traits.gives != Given::kFirstOnes || repeats) {
      // Where the first ones are taken, a pass that is repeated ends elsewhere than the data.
      return nullptr;
    }
  }
  return nullptr;
}

// The first stage of which nobody knows how many elements it gives, though that is known of all in
// front of it.
const OrderNode& FindUnknown(const OrderNode& node, FrontContext& context) {
  for (const auto& input : node.inputs) {
    if (!MakeOrder(*input, context)->Count()) return FindUnknown(*input, context);
  }
  return node;
}

void DescribePass(const PlanImpl& plan, FrontContext& context, StepCount* count) {
  const OrderNode* const batch = FindPass(plan);
  if (batch == nullptr) return;
  const std::optional<uint64_t> rows = MakeOrder(*batch->inputs[0], context)->Count();
  const std::optional<uint64_t> steps = MakeOrder(*batch, context)->Count();
  if (!rows || !steps || *steps == 0) return;
  // Without an end no step is short, whatever a `take` makes of it.
  const uint64_t full = plan.batch_rows();
  const bool ends = *rows != OrderOp::kEndless;
  const Remainder remainder = plan.program().form().remainder;
  const bool is_short =
      ends && *rows % full != 0 && (remainder == Remainder::kKeep || remainder == Remainder::kPad);
  count->pass_steps = ends ? *steps : 1;
  count->pass_last_rows = static_cast<uint32_t>(is_short ? *rows % full : full);
}

}  // namespace

StepCount CountSteps(const Plan& plan) {
  const auto& built = static_cast<const PlanImpl&>(plan);
  FileTable files(built.files(), built.manifest(), IndexBuilding::kNever, &built.indices());
  RecordStore store;
  ReadQueue reads;
  SectionQueue sections;
  DamageLog damage;
  const std::atomic<bool> cancelled{false};
  Front front(built, files, store, reads, sections, damage, cancelled);
  const std::optional<uint64_t> count = front.Count();
  StepCount result;
  if (count && *count != OrderOp::kEndless) {
    result.steps = count;
    DescribePass(built, front.context(), &result);
  } else if (count || plan.endless()) {
    result.why_not = "the stream has no end (`repeat` without count)";
  } else if (const std::string missing = files.MissingIndex(); !missing.empty()) {
    result.why_not = absl::StrCat(
        "the records have not been counted: `penstock index` of the pipeline's files counts them, "
        "before it is created (`--format` names records that are no TFRecords); there is no index "
        "of ",
        missing.substr(missing.rfind('/') + 1));
  } else {
    const OrderNode& unknown = FindUnknown(built.order(), front.context());
    const std::string& stage = built.stage_names()[unknown.stage];
    result.why_not =
        unknown.inputs.empty()
            ? absl::StrCat(
                  "only reading tells: its files are compressed, or their data decide how "
                  "many elements stage ",
                  stage, " gives")
            : absl::StrCat("only reading tells: the data decides how many elements stage ", stage,
                           " gives");
  }
  return result;
}

}  // namespace penstock
