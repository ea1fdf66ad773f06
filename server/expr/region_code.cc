#include "server/expr/region_code.h"

#include "absl/strings/str_cat.h"
#include "server/kernels/chain.h"

namespace penstock::expr {
namespace {

using kernels::Form;
using kernels::Lane;
using kernels::Span;
using Steps = absl::Span<const RegionStep>;

// A load and the two or three operations behind it as one instruction, and the store of the result,
// too, if form.stored.
struct Chain {
  kernels::Handler run = nullptr;  // null: the steps are none
  size_t steps = 0;
};

kernels::Handler FindCode(const RegionStep& step, Form form) {
  switch (step.kind) {
    case RegionStep::Kind::kLoad:
      return kernels::Load(step.memory, step.lane, form);
    case RegionStep::Kind::kLoadConverted:
      return kernels::LoadConverted(step.memory, step.lane, form);
    case RegionStep::Kind::kStore:
      return kernels::Store(step.memory, step.lane, form);
    case RegionStep::Kind::kStoreResult:
      return kernels::StoreResult(step.memory, step.lane, form);
    case RegionStep::Kind::kConvert:
      return kernels::Convert(step.lane, step.to, form);
    case RegionStep::Kind::kWrap:
      return kernels::WrapInteger(step.memory, form);
    case RegionStep::Kind::kOperation:
    case RegionStep::Kind::kReversed:
    case RegionStep::Kind::kChoice:
      return FindOperation(step, form);
    case RegionStep::Kind::kOperand:
      break;
  }
  return nullptr;
}

bool IsOperation(Steps steps, size_t step) {
  return step < steps.size() && (steps[step].kind == RegionStep::Kind::kOperation ||
                                 steps[step].kind == RegionStep::Kind::kReversed);
}

bool IsResult(Steps steps, size_t step) {
  return step < steps.size() && steps[step].kind == RegionStep::Kind::kStoreResult &&
         DTypeSize(steps[step].memory) == LaneBytes(steps[step].lane);
}

Chain FindChain(Steps steps, size_t first, Form form) {
  const RegionStep& load = steps[first];
  if (load.kind != RegionStep::Kind::kLoad && load.kind != RegionStep::Kind::kLoadConverted)
    return {};
  if (load.lane != Lane::kFloat32 || load.first.step == 0) return {};
  // The code of a basic operation of float32; none: -1.
  const auto code_of = [steps](size_t step) {
    if (!IsOperation(steps, step) || steps[step].lane != Lane::kFloat32) return -1;
    const kernels::Operation& operation = *steps[step].operation;
    if (operation.lookup != kernels::FindArithmetic) return -1;
    return steps[step].kind == RegionStep::Kind::kReversed ? operation.reversed : operation.code;
  };
  const int code1 = code_of(first + 1);
  const int code2 = code_of(first + 2);
  if (code1 < 0 || code2 < 0 || steps[first + 1].aside) return {};
  const auto one = static_cast<kernels::Arithmetic>(code1);
  const auto two = static_cast<kernels::Arithmetic>(code2);
  const bool broadcast1 = steps[first + 1].first.step == 0;
  const bool broadcast2 = steps[first + 2].first.step == 0;
  form.loaded = load.memory;
  form.aside = false;
  const auto stores_behind = [&](size_t count) {
    return form.stored && IsResult(steps, first + count);
  };
  Form chained = form;
  // What the load puts aside for the last operation alone stays where it is.
  if (load.aside && steps[first + 2].aside) {
    chained.stored = stores_behind(3);
    return {broadcast1 ? kernels::FindChain(kernels::ChainKind::kOnto, one, two, chained) : nullptr,
            size_t{3} + chained.stored};
  }
  if (steps[first + 2].aside || (!broadcast2 && broadcast1)) return {};
  if (const int code3 = code_of(first + 3);
      broadcast2 && load.aside && code3 >= 0 && steps[first + 3].aside) {
    chained.stored = stores_behind(4);
    const auto three = static_cast<kernels::Arithmetic>(code3);
    const kernels::Handler run = kernels::FindLongChain(one, two, three, chained);
    if (run != nullptr) return {run, size_t{4} + chained.stored};
  }
  chained.pushes = load.aside;
  for (const bool stored : {stores_behind(3), false}) {
    chained.stored = stored;
    const kernels::Handler run = kernels::FindChain(kernels::ChainKind::kBehind, one, two, chained);
    if (run != nullptr) return {run, size_t{3} + stored};
  }
  return {};
}

// Has operations do the work of the loads before them and of the store behind them, where there is
// code for it.
void Fuse(Steps steps, std::vector<kernels::Instruction>& code, Form form) {
  size_t count;  // of steps whose work is done by one
  for (size_t i = 0; i < steps.size(); i += count) {
    count = 1;
    const RegionStep& step = steps[i];
    const bool loads =
        step.kind == RegionStep::Kind::kLoad || step.kind == RegionStep::Kind::kLoadConverted;
    Form stored_form = form;
    stored_form.stored = true;
    if (const Chain chain = FindChain(steps, i, stored_form); chain.run != nullptr) {
      code[i].run = chain.run;
      count = chain.steps;
    } else if (loads && step.first.step != 0 && IsOperation(steps, i + 1) &&
               steps[i + 1].lane == step.lane) {
      Form fused = form;
      fused.aside = steps[i + 1].aside;
      fused.loaded = step.memory;
      fused.pushes = step.aside;
      for (const bool stored : {true, false}) {
        fused.stored = stored;
        if (stored && !IsResult(steps, i + 2)) continue;
        const kernels::Handler handler = FindOperation(steps[i + 1], fused);
        if (handler == nullptr) continue;
        code[i].run = handler;
        count = stored ? 3 : 2;
        break;
      }
    } else if (step.kind == RegionStep::Kind::kChoice) {
      count = 2;
      Form fused = form;
      fused.aside = false;
      fused.stored = true;
      const kernels::Handler handler =
          IsResult(steps, i + 2) ? FindOperation(step, fused) : nullptr;
      if (handler == nullptr) continue;
      code[i].run = handler;
      count = 3;
    } else if (IsOperation(steps, i) && IsResult(steps, i + 1)) {
      Form fused = form;
      fused.aside = step.aside;
      fused.stored = true;
      const kernels::Handler handler = FindOperation(step, fused);
      if (handler == nullptr) continue;
      code[i].run = handler;
      count = 2;
    }
  }
}

}  // namespace

kernels::Handler FindOperation(const RegionStep& step, Form form) {
  if (step.kind == RegionStep::Kind::kChoice) {
    return kernels::FindChoice(step.comparison, step.reversed, step.lane, form);
  }
  return step.kind == RegionStep::Kind::kReversed ? step.operation->FindReversed(step.lane, form)
                                                  : step.operation->Find(step.lane, form);
}

absl::StatusOr<std::vector<kernels::Instruction>> EncodeSteps(Steps steps, Form form) {
  std::vector<kernels::Instruction> code;
  const bool fuses = form.span == Span::kWide || form.span == Span::kPair;
  size_t chained = 0;  // steps that the last chain does the work of end here
  for (size_t i = 0; i < steps.size(); ++i) {
    const RegionStep& step = steps[i];
    kernels::Instruction instruction;
    form.aside = step.aside;
    if (fuses && i >= chained) {
      const Chain chain = FindChain(steps, i, form);
      instruction.run = chain.run;
      if (chain.run != nullptr) chained = i + chain.steps;
    }
    if (instruction.run == nullptr) {
      // What another instruction does is never run, but not null either.
      const bool done = i < chained || step.kind == RegionStep::Kind::kOperand;
      instruction.run = done ? code.back().run : FindCode(step, form);
    }
    if (instruction.run == nullptr) {
      return absl::InternalError(absl::StrCat("no code for step ", static_cast<int>(step.kind),
                                              " on lane ", static_cast<int>(step.lane)));
    }
    instruction.operand = step.first.operand;
    instruction.cursor = step.first.cursor;
    instruction.vector_step = step.first.step;
    instruction.operand2 = step.second.operand;
    instruction.cursor2 = step.second.cursor;
    instruction.vector_step2 = step.second.step;
    code.push_back(instruction);
  }
  if (fuses) Fuse(steps, code, form);
  kernels::Instruction finish;
  finish.run = kernels::Finish();
  code.push_back(finish);
  return code;
}

}  // namespace penstock::expr
