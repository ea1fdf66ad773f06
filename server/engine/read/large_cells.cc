#include "server/engine/read/large_cells.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/arena.h"

namespace penstock {
namespace {

constexpr size_t kSteps = 16;
// Behind the last cell of a slab, for loads of whole vectors.
constexpr size_t kPadding = Arena::kPadding;

}  // namespace

size_t LargeCells::CellBytes(size_t length) {
  const size_t step = std::max<size_t>(std::bit_floor(length) / kSteps, 64);
  return (length + step - 1) / step * step;
}

LargeCells::Slab* LargeCells::Grow(size_t cell_bytes, Size& size) {
  const size_t most = std::max<size_t>(1, (kMaxSlabBytes - kPadding) / cell_bytes);
  size_t cells = std::min(size.next_slab_cells, most);
  size.next_slab_cells = 2 * cells;
  size_t bytes = cells * cell_bytes + kPadding;
  if (bytes >= kHugePageBytes) {
    // It takes whole huge pages then.
    bytes = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    cells = (bytes - kPadding) / cell_bytes;
  }
  Slab slab;
  slab.memory = AllocateMemoryBlock(bytes);
  slab.cell_bytes = cell_bytes;
  slab.cells = cells;
  const uint8_t* const address = slab.memory.get();
  Slab* const placed = &slabs_.emplace(address, std::move(slab)).first->second;
  size.with_room.push_back(placed);
  return placed;
}

uint8_t* LargeCells::Take(size_t length) {
  const size_t cell_bytes = CellBytes(length);
  Size& size = sizes_[cell_bytes];
  Slab& slab = size.with_room.empty() ? *Grow(cell_bytes, size) : *size.with_room.back();
  if (size.unused == &slab) size.unused = nullptr;
  ++used_;
  ++slab.used;
  if (!slab.has_room()) size.with_room.pop_back();
  if (slab.free.empty()) return slab.memory.get() + slab.begun++ * cell_bytes;
  uint8_t* const cell = slab.free.back();
  slab.free.pop_back();
  return cell;
}

void LargeCells::Release(const uint8_t* record) {
  Slab& slab = std::prev(slabs_.upper_bound(record))->second;
  Size& size = sizes_[slab.cell_bytes];
  if (!slab.has_room()) size.with_room.push_back(&slab);
  slab.free.push_back(const_cast<uint8_t*>(record));
  --slab.used;
  --used_;
  if (slab.used > 0) return;
  // The larger one of those that are empty stays: what comes and goes in large numbers would have
  // the memory of new slabs cleared each time.
  const Slab* smaller = size.unused;  // or null: there is no other
  if (smaller != nullptr && smaller->cells >= slab.cells) smaller = &slab;
  if (smaller != &slab) {
    std::erase(size.with_room, &slab);
    size.with_room.insert(size.with_room.begin(), &slab);
    size.unused = &slab;
  }
  if (smaller == nullptr) return;
  std::erase(size.with_room, smaller);
  slabs_.erase(smaller->memory.get());
}

}  // namespace penstock
