#include "server/expr/region_builder.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
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

// One value of a constant as its lane type holds it.
template <typename T>
void AppendAs(std::vector<uint8_t>& bytes, T value) {
  const size_t end = bytes.size();
  bytes.resize(end + sizeof(T));
  std::memcpy(bytes.data() + end, &value, sizeof(T));
}

template <typename From, typename To>
std::vector<uint8_t> Widen(const std::vector<uint8_t>& data) {
  std::vector<uint8_t> bytes;
  bytes.reserve(data.size() / sizeof(From) * sizeof(To));
  for (size_t i = 0; i < data.size(); i += sizeof(From)) {
    From value;
    std::memcpy(&value, data.data() + i, sizeof(From));
    AppendAs<To>(bytes, static_cast<To>(value));
  }
  return bytes;
}

std::vector<uint8_t> ToLanes(const Node& node) {
  switch (node.type.dtype) {
    case DType::kBool:
    case DType::kUint8:
      return Widen<uint8_t, int32_t>(node.data);
    case DType::kInt8:
      return Widen<int8_t, int32_t>(node.data);
    case DType::kUint16:
      return Widen<uint16_t, int32_t>(node.data);
    case DType::kInt16:
      return Widen<int16_t, int32_t>(node.data);
    default:
      return node.data;
  }
}

// The number of elements after which an array repeats itself: a divisor of their count.
size_t Period(const std::vector<uint8_t>& bytes, size_t element_bytes) {
  const size_t count = bytes.size() / element_bytes;
  for (size_t period = 1; period <= count / 2; ++period) {
    if (count % period != 0) continue;
    const size_t shift = period * element_bytes;
    if (std::memcmp(bytes.data(), bytes.data() + shift, bytes.size() - shift) == 0) return period;
  }
  return count;
}

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

// Counts in how many places each node is needed.
void RegionBuilder::Count(const Node* node) {
  node = Skip(node);
  ++uses_[node];
  if (!visited_.insert(node).second || IsLeaf(node) || node->is_constant()) return;
  for (const Node* argument : node->arguments) Count(argument);
}

// A 64-bit column that is cast to float32 right away is narrowed while it is loaded, so the rest
// keeps whole vectors.
bool RegionBuilder::Has64Bit(const Node* node) const {
  node = Skip(node);
  if (LaneBytes(LaneOf(node->type.dtype)) == 8) return true;
  if (IsLeaf(node) || node->is_constant()) return false;
  if (node->function->rule == TypeRule::kCast && node->type.dtype == DType::kFloat32) {
    const Node* argument = Skip(node->arguments[0]);
    const DType dtype = argument->type.dtype;
    if (IsLeaf(argument) && (dtype == DType::kInt64 || dtype == DType::kFloat64)) return false;
  }
  for (const Node* argument : node->arguments) {
    if (Has64Bit(argument)) return true;
  }
  return false;
}

uint16_t RegionBuilder::AddOperand(uint8_t* base) {
  region_->base_.push_back(base);
  return static_cast<uint16_t>(region_->base_.size() - 1);
}

uint16_t RegionBuilder::InputOperand(const Node* node) {
  const auto found = input_operands_.find(node);
  if (found != input_operands_.end()) return found->second;
  const uint16_t operand = AddOperand(nullptr);
  region_->inputs_.push_back(node);
  region_->columns_.push_back({operand, static_cast<uint8_t>(DTypeSize(node->type.dtype))});
  input_operands_[node] = operand;
  return operand;
}

RegionBuilder::Operand RegionBuilder::PutAside(Lane lane) {
  uint16_t tile;
  if (free_tiles_.empty()) {
    tile = AddOperand(nullptr);
    region_->tiles_.push_back(tile);
  } else {
    tile = free_tiles_.back();
    free_tiles_.pop_back();
  }
  const Operand operand{tile, 0, vector_elements_};
  Step store;
  store.kind = Step::Kind::kStore;
  store.lane = lane;
  store.memory = lane == Lane::kInt32     ? DType::kInt32
                 : lane == Lane::kUint32  ? DType::kUint32
                 : lane == Lane::kInt64   ? DType::kInt64
                 : lane == Lane::kUint64  ? DType::kUint64
                 : lane == Lane::kFloat32 ? DType::kFloat32
                                          : DType::kFloat64;
  store.first = operand;
  steps_.push_back(store);
  return operand;
}

void RegionBuilder::Release(const Operand& tile) { free_tiles_.push_back(tile.operand); }

RegionBuilder::Operand RegionBuilder::SplatOperand(Lane lane, double value) {
  auto bytes = std::make_unique<uint8_t[]>(64);
  for (size_t i = 0; i < 64; i += kernels::LaneBytes(lane)) {
    if (lane == Lane::kInt32) {
      const auto v = static_cast<int32_t>(value);
      std::memcpy(bytes.get() + i, &v, sizeof(v));
    } else if (lane == Lane::kFloat32) {
      const auto v = static_cast<float>(value);
      std::memcpy(bytes.get() + i, &v, sizeof(v));
    } else if (lane == Lane::kFloat64) {
      std::memcpy(bytes.get() + i, &value, sizeof(value));
    } else {
      const auto v = static_cast<int64_t>(value);
      std::memcpy(bytes.get() + i, &v, kernels::LaneBytes(lane));
    }
  }
  const uint16_t operand = AddOperand(bytes.get());
  region_->constants_.push_back(std::move(bytes));
  return {operand, 0, 0};
}

absl::StatusOr<RegionBuilder::Operand> RegionBuilder::ConstantOperand(const Node* node) {
  const auto found = constant_operands_.find(node);
  if (found != constant_operands_.end()) return found->second;
  const std::vector<uint8_t> lanes = ToLanes(*node);
  const size_t element = kernels::LaneBytes(LaneOf(node->type.dtype));
  size_t period = Period(lanes, element);
  Operand operand;
  size_t extended = 64 / element;  // a splat fills the widest vector
  if (period > 1) {
    // A cursor for its period, or one that is a multiple of it.
    auto& periods = region_->periods_;
    size_t cursor = 2;
    while (cursor < periods.size() && periods[cursor] != period) ++cursor;
    if (cursor >= kernels::kMaxCursors - 1 && cursor == periods.size()) {
      period = lanes.size() / element;
      cursor = 2;
      while (cursor < periods.size() && periods[cursor] != period) ++cursor;
    }
    if (cursor >= kernels::kMaxCursors) {
      return absl::InvalidArgumentError(
          "too many array constants of different sizes in one expression");
    }
    if (cursor == periods.size()) periods.push_back(static_cast<uint32_t>(period));
    operand.cursor = static_cast<uint8_t>(cursor);
    operand.step = vector_elements_;
    extended = period + 8 * size_t{vector_elements_};
  }
  auto bytes = std::make_unique<uint8_t[]>(extended * element);
  for (size_t i = 0; i < extended; ++i) {
    std::memcpy(bytes.get() + i * element, lanes.data() + i % period * element, element);
  }
  operand.operand = AddOperand(bytes.get());
  region_->constants_.push_back(std::move(bytes));
  constant_operands_[node] = operand;
  return operand;
}

std::optional<RegionBuilder::Operand> RegionBuilder::Direct(const Node* node) {
  node = Skip(node);
  if (const auto saved = saved_.find(node); saved != saved_.end()) return saved->second;
  if (node->is_constant()) {
    auto operand = ConstantOperand(node);
    if (operand.ok()) return *operand;
    return std::nullopt;
  }
  const DType dtype = node->type.dtype;
  if (IsLeaf(node) && DTypeSize(dtype) == kernels::LaneBytes(LaneOf(dtype))) {
    return Operand{InputOperand(node), 1, vector_elements_};
  }
  return std::nullopt;
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
    steps_.push_back(load);
    return absl::OkStatus();
  }
  if (node->is_constant()) {
    auto operand = ConstantOperand(node);
    if (!operand.ok()) return operand.status();
    load.memory = lane == Lane::kInt32 ? DType::kInt32 : node->type.dtype;
    load.first = *operand;
    steps_.push_back(load);
    return absl::OkStatus();
  }
  if (IsLeaf(node)) {
    load.memory = node->type.dtype;
    load.first = {InputOperand(node), 1, vector_elements_};
    steps_.push_back(load);
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
      if (auto status = Generate(b); !status.ok()) return status;
      if (const auto saved = Direct(b)) {
        step.first = *saved;
      } else {
        aside = PutAside(LaneOf(b->type.dtype));
        step.first = *aside;
      }
      if (auto status = Generate(a); !status.ok()) return status;
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

absl::Status RegionBuilder::GenerateTernary(const Node* node) {
  // The others wait in memory while the accumulator's argument is computed: a choice's first value, else the first argument.
  const size_t accumulated = node->function->rule == TypeRule::kSelect ? 1 : 0;
  Step step;
  step.kind = Step::Kind::kOperation;
  step.operation = &node->function->operation;
  step.lane = LaneOf(node->type.dtype);
  std::vector<Operand> aside;
  bool first = true;
  for (size_t which = 0; which < 3; ++which) {
    if (which == accumulated) continue;
    const Node* argument = Skip(node->arguments[which]);
    auto direct = Direct(argument);
    if (!direct) {
      if (auto status = Generate(argument); !status.ok()) return status;
      direct = Direct(argument);
      if (!direct) {
        direct = PutAside(LaneOf(argument->type.dtype));
        aside.push_back(*direct);
      }
    }
    (first ? step.first : step.second) = *direct;
    first = false;
  }
  if (auto status = Generate(node->arguments[accumulated]); !status.ok()) return status;
  steps_.push_back(step);
  for (const Operand& tile : aside) Release(tile);
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
      load.first = {InputOperand(argument), 1, vector_elements_};
      steps_.push_back(load);
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

absl::Status RegionBuilder::Emit(Region& region, int which, Form form) {
  std::vector<kernels::Instruction>& code = region.code_[which];
  for (const Step& step : steps_) {
    kernels::Instruction instruction;
    switch (step.kind) {
      case Step::Kind::kLoad:
        instruction.run = kernels::Load(step.memory, step.lane, form);
        break;
      case Step::Kind::kLoadConverted:
        instruction.run = kernels::LoadConverted(step.memory, step.lane, form);
        break;
      case Step::Kind::kStore:
        instruction.run = kernels::Store(step.memory, step.lane, form);
        break;
      case Step::Kind::kStoreResult:
        instruction.run = kernels::StoreResult(step.memory, step.lane, form);
        break;
      case Step::Kind::kConvert:
        instruction.run = kernels::Convert(step.lane, step.to, form);
        break;
      case Step::Kind::kWrap:
        instruction.run = kernels::WrapInteger(step.memory, form);
        break;
      case Step::Kind::kOperation:
        instruction.run = step.operation->Find(step.lane, form);
        break;
      case Step::Kind::kReversed:
        instruction.run = step.operation->FindReversed(step.lane, form);
        break;
    }
    if (instruction.run == nullptr) {
      code.clear();
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
  kernels::Instruction finish;
  finish.run = kernels::Finish();
  code.push_back(finish);
  region.step_elements_[which] = kernels::StepElements(form);
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
  if (auto status = Emit(*region_, 1, narrow); !status.ok()) return status;
  // Types without wide code make do with short steps.
  if (lanes_ == Lanes::kVector) (void)Emit(*region_, 0, wide);
  region_->tile_bytes_ = 8 * kernels::VectorBytes();
  region_->loop_ = kernels::FindStepLoop();
  return std::move(region_);
}

}  // namespace penstock::expr
