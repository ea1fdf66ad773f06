#include "server/expr/region.h"

#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/expr/region_builder.h"

namespace penstock::expr {
namespace {

// Operands and tiles of ordinary regions fit the stack; the rest is allocated.
constexpr size_t kStackOperands = 64;
constexpr size_t kStackTileBytes = 16 * 512;
// Of a row, which may have many elements: so many times an instruction for one of them, some
// milliseconds.
constexpr size_t kWorkBetweenLooks = size_t{1} << 22;

}  // namespace

absl::StatusOr<std::unique_ptr<Region>> Region::Build(const Node& root,
                                                      const std::set<const Node*>& leaves,
                                                      Lanes lanes) {
  return RegionBuilder(leaves, lanes).Build(root);
}

void Region::Run(size_t first, size_t elements, const uint8_t* const* inputs, uint8_t* out,
                 bool past_caches) const {
  if (run_elements_ == 0) return RunPiece(first, elements, inputs, out, past_caches);
  absl::InlinedVector<const uint8_t*, 8> piece(inputs, inputs + inputs_.size());
  while (elements > 0) {
    const size_t count = std::min(run_elements_ - first % run_elements_, elements);
    RunPiece(first, count, piece.data(), out, past_caches);
    for (size_t i = 0; i < piece.size(); ++i) piece[i] += count * columns_[i].element_bytes;
    out += count * columns_.back().element_bytes;
    first += count;
    elements -= count;
  }
}

void Region::RunPiece(size_t first, size_t elements, const uint8_t* const* inputs, uint8_t* out,
                      bool past_caches) const {
  uint8_t* stack_base[kStackOperands];
  alignas(64) uint8_t stack_tiles[kStackTileBytes];
  std::unique_ptr<uint8_t*[]> heap_base;
  std::unique_ptr<uint8_t[]> heap_tiles;
  uint8_t** base = stack_base;
  uint8_t* tiles = stack_tiles;
  if (base_.size() > kStackOperands) {
    heap_base = std::make_unique<uint8_t*[]>(base_.size());
    base = heap_base.get();
  }
  if (tiles_.size() * tile_bytes_ > kStackTileBytes) {
    heap_tiles = std::make_unique_for_overwrite<uint8_t[]>(tiles_.size() * tile_bytes_);
    tiles = heap_tiles.get();
  }
  std::copy(base_.begin(), base_.end(), base);
  for (size_t i = 0; i < tiles_.size(); ++i) base[tiles_[i]] = tiles + i * tile_bytes_;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    base[columns_[i].operand] = const_cast<uint8_t*>(inputs[i]);
  }
  base[columns_.back().operand] = out;
  for (const HeldConstant& held : held_constants_) {
    base[held.operand] = held.values + first / run_elements_ % held.runs * kSplatBytes;
  }

  kernels::LaneState state;
  state.base = base;
  state.past_caches = past_caches;
  for (size_t i = 2; i < periods_.size(); ++i) state.cursor[i] = first % periods_[i];
  for (int which = 0; which < 2; ++which) {
    if (code_[which].empty()) continue;
    const size_t steps = (elements - state.cursor[1]) / step_elements_[which];
    if (steps == 0) continue;
    const size_t instructions = code_[which].size();
    const size_t most =
        elements * instructions <= kWorkBetweenLooks
            ? steps
            : std::max<size_t>(1, kWorkBetweenLooks / instructions / step_elements_[which]);
    for (size_t left = steps; left > 0;) {
      const size_t now = std::min(left, most);
      loop_(code_[which].data(), state, step_elements_[which], now, periods_.data(),
            static_cast<int>(periods_.size()));
      left -= now;
      if (left > 0) CheckStop();
    }
  }
  if (state.cursor[1] < elements) RunTail(elements - state.cursor[1], base, state);
}

// The last step goes through copies: neither input nor output may be touched behind its end.
void Region::RunTail(size_t elements, uint8_t** base, kernels::LaneState& state) const {
  constexpr size_t kColumnBytes =
      128 * 2;  // two vectors, or one element of eight bytes for each of them
  alignas(64) uint8_t stack[8 * kColumnBytes];
  std::unique_ptr<uint8_t[]> heap;
  uint8_t* staging = stack;
  if (columns_.size() > 8) {
    heap = std::make_unique<uint8_t[]>(columns_.size() * kColumnBytes);
    staging = heap.get();
  }
  const size_t done = state.cursor[1];
  const size_t last = columns_.size() - 1;
  uint8_t* out = base[columns_[last].operand];
  for (size_t i = 0; i < columns_.size(); ++i) {
    uint8_t* copy = staging + i * kColumnBytes;
    const size_t size = columns_[i].element_bytes;
    if (size == 0) continue;
    if (i != last) {
      std::memcpy(copy, base[columns_[i].operand] + done * size, elements * size);
      std::memset(copy + elements * size, 0, (step_elements_[1] - elements) * size);
    }
    base[columns_[i].operand] = copy;
  }
  state.cursor[1] = 0;
  loop_(code_[1].data(), state, step_elements_[1], 1, periods_.data(),
        static_cast<int>(periods_.size()));
  const size_t size = columns_[last].element_bytes;
  std::memcpy(out + done * size, staging + last * kColumnBytes, elements * size);
}

std::string Region::DebugString() const {
  return absl::StrCat(num_instructions(), " instructions, ", constants_.size(), " constants, ",
                      tiles_.size(), " tiles", code_[0].empty() ? ", short steps" : "",
                      run_elements_ == 0 ? "" : absl::StrCat(", runs of ", run_elements_));
}

absl::StatusOr<std::vector<uint8_t>> EvaluateConstant(const Node& node) {
  auto region = Region::Build(node, {}, Lanes::kVector);
  if (!region.ok()) return region.status();
  const auto elements = static_cast<size_t>(node.elements());
  std::vector<uint8_t> data(elements * DTypeSize(node.type.dtype));
  (*region)->Run(0, elements, nullptr, data.data());
  return data;
}

}  // namespace penstock::expr
