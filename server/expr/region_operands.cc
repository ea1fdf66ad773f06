// What instructions read besides their accumulator: columns, constants and what was put aside.
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "server/expr/constant_lanes.h"
#include "server/expr/region_builder.h"

namespace penstock::expr {
namespace {

using kernels::Lane;

// Arrays that do not repeat themselves after so many elements are long: in L1 they would take the
// place of data.
constexpr size_t kLongPeriod = 1024;
// Shorter runs cost more in calls than their constants do in memory.
constexpr size_t kRunElementsMin = 256;

}  // namespace

void RegionBuilder::CountConstant(const Node& node) {
  const size_t element = DTypeSize(node.type.dtype);
  if (node.data.size() / element <= kLongPeriod || Period(node.data, element) <= kLongPeriod)
    return;
  run_elements_ = std::gcd(run_elements_, RunElements(node.data, element, kRunElementsMin));
}

uint16_t RegionBuilder::AddOperand(uint8_t* base) {
  region_->base_.push_back(base);
  return static_cast<uint16_t>(region_->base_.size() - 1);
}

RegionBuilder::Operand RegionBuilder::InputOperand(const Node* node) {
  const bool repeats = Repeats(node);
  const auto [found, fresh] = input_operands_.emplace(node, uint16_t{0});
  if (fresh) {
    found->second = AddOperand(nullptr);
    region_->inputs_.push_back(repeats ? node->arguments[0] : node);
    region_->any_repeats_ |= repeats;
    const size_t element_bytes = repeats ? 0 : DTypeSize(node->type.dtype);
    region_->columns_.push_back({found->second, static_cast<uint8_t>(element_bytes)});
  }
  if (repeats) return {found->second, 0, 0};
  return {found->second, 1, vector_elements_};
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
  if (period > kLongPeriod && run_elements_ >= kRunElementsMin) {
    return constant_operands_[node] = HeldOperand(lanes, element);
  }
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

RegionBuilder::Operand RegionBuilder::HeldOperand(const std::vector<uint8_t>& lanes,
                                                  size_t element) {
  const size_t runs = lanes.size() / element / run_elements_;
  auto bytes = std::make_unique<uint8_t[]>(runs * Region::kSplatBytes);
  for (size_t i = 0; i < runs * Region::kSplatBytes; i += element) {
    const size_t run = i / Region::kSplatBytes;
    std::memcpy(bytes.get() + i, lanes.data() + run * run_elements_ * element, element);
  }
  const uint16_t operand = AddOperand(nullptr);
  region_->held_constants_.push_back({operand, bytes.get(), runs});
  region_->run_elements_ = run_elements_;
  region_->constants_.push_back(std::move(bytes));
  return {operand, 0, 0};
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
    return InputOperand(node);
  }
  return std::nullopt;
}

}  // namespace penstock::expr
