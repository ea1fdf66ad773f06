#include "server/expr/region_builder.h"

#include <limits>
#include <utility>

#include "server/kernels/arithmetic.h"
#include "server/kernels/saturate.h"

namespace penstock::expr {
namespace {

using kernels::Form;
using kernels::Lane;
using kernels::Span;

constexpr kernels::Operation kMaximumOperation = {
    kernels::FindArithmetic, static_cast<int>(kernels::Arithmetic::kMaximum), -1};
constexpr kernels::Operation kMinimumOperation = {
    kernels::FindArithmetic, static_cast<int>(kernels::Arithmetic::kMinimum), -1};
constexpr kernels::Operation kNotEqualOperation = {
    kernels::FindComparison, static_cast<int>(kernels::Comparison::kNotEqual), -1};

bool IsNarrow(DType dtype) { return IsInteger(dtype) && DTypeSize(dtype) < 4; }

struct Limits {
  double low;
  double high;
};

Limits LimitsOf(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return {-128, 127};
    case DType::kUint8:
      return {0, 255};
    case DType::kInt16:
      return {-32768, 32767};
    case DType::kUint16:
      return {0, 65535};
    case DType::kBool:
      return {0, 1};
    default:
      return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  }
}

}  // namespace

Lane LaneOf(DType dtype) {
  switch (dtype) {
    case DType::kUint32:
      return Lane::kUint32;
    case DType::kInt64:
      return Lane::kInt64;
    case DType::kUint64:
      return Lane::kUint64;
    case DType::kFloat32:
      return Lane::kFloat32;
    case DType::kFloat64:
      return Lane::kFloat64;
    default:
      return Lane::kInt32;
  }
}

const Node* RegionBuilder::Skip(const Node* node) {
  while (node->kind == Node::Kind::kView && node->source.empty()) node = node->arguments[0];
  return node;
}

bool RegionBuilder::IsLeaf(const Node* node) const {
  return !node->is_constant() && (node->kind != Node::Kind::kElementwise || leaves_.contains(node));
}

bool RegionBuilder::Repeats(const Node* node) {
  // Shorter rows are copied side by side for less than a call for each of them costs.
  constexpr int64_t kElementsMin = 256;
  const size_t size = DTypeSize(node->type.dtype);
  return node->kind == Node::Kind::kView && node->elements() >= kElementsMin &&
         node->arguments[0]->elements() == 1 &&
         size == kernels::LaneBytes(LaneOf(node->type.dtype));
}

// Counts in how many places each node is needed.
void RegionBuilder::Count(const Node* node) {
  node = Skip(node);
  ++uses_[node];
  if (node->is_constant() && visited_.insert(node).second) CountConstant(*node);
  if (!visited_.insert(node).second || IsLeaf(node) || node->is_constant()) return;
  std::set<const Node*> computed;
  bool two_at_once = false;
  for (const Node* argument : node->arguments) {
    argument = Skip(argument);
    Count(argument);
    two_at_once |= two_at_once_.contains(argument);
    const bool full_width =
        DTypeSize(argument->type.dtype) == kernels::LaneBytes(LaneOf(argument->type.dtype));
    if (!argument->is_constant() && !(IsLeaf(argument) && full_width)) computed.insert(argument);
  }
  if (two_at_once || computed.size() > 1) two_at_once_.insert(node);
}

// A 64-bit column that is cast to float32 right away is narrowed while it is loaded, so the rest
// keeps whole vectors.
bool RegionBuilder::Has64Bit(const Node* node) {
  node = Skip(node);
  if (LaneBytes(LaneOf(node->type.dtype)) == 8) return true;
  if (IsLeaf(node) || node->is_constant() || without_64bit_.contains(node)) return false;
  if (node->function->rule == TypeRule::kCast && node->type.dtype == DType::kFloat32) {
    const Node* argument = Skip(node->arguments[0]);
    const DType dtype = argument->type.dtype;
    if (IsLeaf(argument) && (dtype == DType::kInt64 || dtype == DType::kFloat64)) return false;
  }
  for (const Node* argument : node->arguments) {
    if (Has64Bit(argument)) return true;
  }
  without_64bit_.insert(node);
  return false;
}

void RegionBuilder::AddLoad(Step load) {
  load.aside = std::exchange(aside_next_, false);
  steps_.push_back(load);
}

absl::Status RegionBuilder::GenerateBesides(const Node* node) {
  // Whatever a node is, the first instruction towards it is a load.
  aside_busy_ = aside_next_ = aside_used_ = true;
  const absl::Status status = Generate(node);
  aside_busy_ = false;
  return status;
}

bool RegionBuilder::MayLieAside(kernels::HandlerLookup lookup, int code, Lane lane) const {
  return !aside_busy_ && code >= 0 &&
         lookup(code, lane, Form{Span::kShort, has_64bit_, true}) != nullptr;
}

bool RegionBuilder::NeedsAside(const Node* node) const {
  node = Skip(node);
  return two_at_once_.contains(node) && !saved_.contains(node);
}

absl::Status RegionBuilder::Generate(const Node* node) {
  node = Skip(node);
  const Lane lane = LaneOf(node->type.dtype);
  Step load;
  load.kind = Step::Kind::kLoad;
  load.lane = lane;
  if (const auto saved = saved_.find(node); saved != saved_.end()) {
    load.memory = lane == Lane::kInt32 ? DType::kInt32 : node->type.dtype;
    load.first = saved->second;
    AddLoad(load);
    return absl::OkStatus();
  }
  if (node->is_constant()) {
    auto operand = ConstantOperand(node);
    if (!operand.ok()) return operand.status();
    load.memory = lane == Lane::kInt32 ? DType::kInt32 : node->type.dtype;
    load.first = *operand;
    AddLoad(load);
    return absl::OkStatus();
  }
  if (IsLeaf(node)) {
    load.memory = node->type.dtype;
    load.first = InputOperand(node);
    AddLoad(load);
  } else {
    absl::Status status;
    if (node->function->rule == TypeRule::kCast) {
      status = GenerateCast(node);
    } else if (node->arguments.size() == 3) {
      status = GenerateTernary(node);
    } else {
      status = GenerateOperation(node);
    }
    if (!status.ok()) return status;
  }
  if (uses_[node] > 1 && (!IsLeaf(node) || !Direct(node))) saved_[node] = PutAside(lane);
  return absl::OkStatus();
}

absl::Status RegionBuilder::GenerateOperation(const Node* node) {
  const auto& operation = node->function->operation;
  const Node* a = Skip(node->arguments[0]);
  Step step;
  step.kind = Step::Kind::kOperation;
  step.operation = &operation;
  step.lane = LaneOf(a->type.dtype);
  if (node->arguments.size() == 1) {
    if (auto status = Generate(a); !status.ok()) return status;
    steps_.push_back(step);
  } else {
    const Node* b = Skip(node->arguments[1]);
    std::optional<Operand> aside;
    if (const auto direct = Direct(b)) {
      if (auto status = Generate(a); !status.ok()) return status;
      step.first = *direct;
    } else if (const auto reversed = Direct(a); reversed && operation.reversed >= 0) {
      if (auto status = Generate(b); !status.ok()) return status;
      step.kind = Step::Kind::kReversed;
      step.first = *reversed;
    } else {
      const bool a_first = MayLieAside(operation.lookup, operation.reversed, step.lane) &&
                           NeedsAside(a) && !NeedsAside(b);
      const Node* const first = a_first ? a : b;
      const Node* const second = a_first ? b : a;
      if (a_first) step.kind = Step::Kind::kReversed;
      if (auto status = Generate(first); !status.ok()) return status;
      if (const auto saved = Direct(first)) {
        step.first = *saved;
        if (auto status = Generate(second); !status.ok()) return status;
      } else if (MayLieAside(operation.lookup, a_first ? operation.reversed : operation.code,
                             step.lane) &&
                 !NeedsAside(second)) {
        step.aside = true;
        if (auto status = GenerateBesides(second); !status.ok()) return status;
      } else {
        aside = PutAside(LaneOf(first->type.dtype));
        step.first = *aside;
        if (auto status = Generate(second); !status.ok()) return status;
      }
    }
    steps_.push_back(step);
    if (aside) Release(*aside);
  }
  // Narrow integers are computed as int32; what NumPy would have dropped is dropped here.
  if (IsNarrow(node->type.dtype) && node->function->rule != TypeRule::kCompare) {
    Step wrap;
    wrap.kind = Step::Kind::kWrap;
    wrap.memory = node->type.dtype;
    steps_.push_back(wrap);
  }
  return absl::OkStatus();
}

std::vector<RegionBuilder::Step> RegionBuilder::ChoiceSteps(const Node* condition, Step step) {
  if (condition->kind != Node::Kind::kElementwise || IsLeaf(condition) || uses_[condition] > 1 ||
      condition->function->operation.lookup != kernels::FindComparison) {
    return {};
  }
  const Node* const a = Skip(condition->arguments[0]);
  const Node* const b = Skip(condition->arguments[1]);
  if (LaneOf(a->type.dtype) != step.lane || LaneOf(b->type.dtype) != step.lane) return {};
  std::optional<Operand> first = Direct(a), second = Direct(b);
  if (!first || !second) return {};
  const kernels::Operation& comparison = condition->function->operation;
  int code = comparison.code;
  if (first->step == 0) {
    std::swap(first, second);
    code = comparison.reversed;
  }
  if (first->step == 0 || code < 0) return {};
  step.reversed = step.kind == Step::Kind::kReversed;
  step.kind = Step::Kind::kChoice;
  step.comparison = static_cast<kernels::Comparison>(code);
  step.first = *first;
  if (FindOperation(step, Form{Span::kShort, has_64bit_}) == nullptr) return {};
  Step operand;
  operand.kind = Step::Kind::kOperand;
  operand.first = *second;
  return {step, operand};
}

absl::Status RegionBuilder::GenerateTernary(const Node* node) {
  const kernels::Operation& operation = node->function->operation;
  const bool select = node->function->rule == TypeRule::kSelect;
  Step step;
  step.kind = Step::Kind::kOperation;
  step.operation = &operation;
  step.lane = LaneOf(node->type.dtype);
  // The others wait while the accumulator's argument is computed: a choice's first value, else the
  // first argument.
  const Node* accumulated = Skip(node->arguments[select ? 1 : 0]);
  const Node* const second = Skip(node->arguments[select ? 0 : 1]);
  const Node* third = Skip(node->arguments[2]);
  if (select && !Direct(third) && Direct(accumulated) &&
      operation.FindReversed(step.lane, Form{Span::kShort, has_64bit_}) != nullptr) {
    std::swap(accumulated, third);
    step.kind = Step::Kind::kReversed;
  }
  std::vector<Operand> tiles;
  const auto in_memory = [&](const Node* argument, Operand& operand) {
    auto direct = Direct(argument);
    if (!direct) {
      if (auto status = Generate(argument); !status.ok()) return status;
      direct = Direct(argument);
      if (!direct) {
        direct = PutAside(LaneOf(argument->type.dtype));
        tiles.push_back(*direct);
      }
    }
    operand = *direct;
    return absl::OkStatus();
  };
  if (auto status = in_memory(third, step.second); !status.ok()) return status;
  const int code = step.kind == Step::Kind::kReversed ? operation.reversed : operation.code;
  std::vector<Step> choice;
  if (select && !Direct(second)) choice = ChoiceSteps(second, step);
  if (!choice.empty()) {
    if (auto status = Generate(accumulated); !status.ok()) return status;
    steps_.insert(steps_.end(), choice.begin(), choice.end());
    for (const Operand& tile : tiles) Release(tile);
    return absl::OkStatus();
  }
  if (!Direct(second) && MayLieAside(operation.lookup, code, step.lane) &&
      !NeedsAside(accumulated)) {
    if (auto status = Generate(second); !status.ok()) return status;
    if (const auto saved = Direct(second)) {
      step.first = *saved;
      if (auto status = Generate(accumulated); !status.ok()) return status;
    } else {
      step.aside = true;
      if (auto status = GenerateBesides(accumulated); !status.ok()) return status;
    }
  } else {
    if (auto status = in_memory(second, step.first); !status.ok()) return status;
    if (auto status = Generate(accumulated); !status.ok()) return status;
  }
  steps_.push_back(step);
  for (const Operand& tile : tiles) Release(tile);
  return absl::OkStatus();
}

absl::Status RegionBuilder::GenerateCast(const Node* node) {
  const Node* argument = Skip(node->arguments[0]);
  const DType from = argument->type.dtype;
  const DType to = node->type.dtype;
  const Lane from_lane = LaneOf(from);
  const Lane to_lane = LaneOf(to);
  if (to == DType::kFloat32 && IsLeaf(argument) && !saved_.contains(argument)) {
    const Form form{Span::kShort, has_64bit_};
    if (kernels::LoadConverted(from, to_lane, form) != nullptr) {
      Step load;
      load.kind = Step::Kind::kLoadConverted;
      load.memory = from;
      load.lane = to_lane;
      load.first = InputOperand(argument);
      AddLoad(load);
      return absl::OkStatus();
    }
  }
  if (auto status = Generate(argument); !status.ok()) return status;
  if (to == DType::kBool) {
    if (from == DType::kBool) return absl::OkStatus();
    Step compare;
    compare.kind = Step::Kind::kOperation;
    compare.operation = &kNotEqualOperation;
    compare.lane = from_lane;
    compare.first = SplatOperand(from_lane, 0);
    steps_.push_back(compare);
    return absl::OkStatus();
  }
  if (from_lane != to_lane) {
    Step convert;
    convert.kind = Step::Kind::kConvert;
    convert.lane = from_lane;
    convert.to = to_lane;
    steps_.push_back(convert);
  }
  if (!IsNarrow(to)) return absl::OkStatus();
  const Limits have = LimitsOf(from);
  const Limits want = LimitsOf(to);
  for (const bool low : {true, false}) {
    if (low ? have.low >= want.low : have.high <= want.high) continue;
    Step clamp;
    clamp.kind = Step::Kind::kOperation;
    clamp.operation = low ? &kMaximumOperation : &kMinimumOperation;
    clamp.lane = Lane::kInt32;
    clamp.first = SplatOperand(Lane::kInt32, low ? want.low : want.high);
    steps_.push_back(clamp);
  }
  return absl::OkStatus();
}

absl::Status RegionBuilder::Emit(int which, Form form) {
  absl::StatusOr<std::vector<kernels::Instruction>> code = EncodeSteps(steps_, form);
  if (!code.ok()) return code.status();
  region_->code_[which] = *std::move(code);
  region_->step_elements_[which] = kernels::StepElements(form);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Region>> RegionBuilder::Build(const Node& root) {
  region_ = std::make_unique<Region>();
  region_->periods_ = {1, 1};
  has_64bit_ = Has64Bit(&root);
  const Form wide{lanes_ == Lanes::kScalar ? Span::kOne : Span::kWide, has_64bit_};
  const Form narrow{lanes_ == Lanes::kScalar ? Span::kOne : Span::kShort, has_64bit_};
  vector_elements_ = static_cast<uint8_t>(kernels::VectorElements(wide));
  // The root itself is computed even if it is a leaf of others.
  Count(&root);
  if (auto status = Generate(&root); !status.ok()) return status;
  const uint16_t out = AddOperand(nullptr);
  region_->columns_.push_back({out, static_cast<uint8_t>(DTypeSize(root.type.dtype))});
  Step store;
  store.kind = Step::Kind::kStoreResult;
  store.memory = root.type.dtype;
  store.lane = LaneOf(root.type.dtype);
  store.first = {out, 1, vector_elements_};
  steps_.push_back(store);
  if (region_->base_.size() > kernels::kMaxOperands) {
    return absl::InvalidArgumentError("an expression of too many operands: split it with a let");
  }
  if (auto status = Emit(1, narrow); !status.ok()) return status;
  // Types without wide code make do with short steps.
  if (lanes_ == Lanes::kVector) {
    // Eight vectors at once, if nothing need be put aside.
    if (!Emit(0, {Span::kWide, has_64bit_}).ok() && aside_used_) {
      (void)Emit(0, {Span::kPair, has_64bit_});
    }
  }
  region_->tile_bytes_ = 8 * kernels::VectorBytes();
  region_->loop_ = kernels::FindStepLoop();
  return std::move(region_);
}

}  // namespace penstock::expr
