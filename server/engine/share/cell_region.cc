#include "server/engine/share/cell_region.h"

#include <sys/mman.h>

#include <iterator>

#include "base/arena.h"

namespace penstock {
namespace {

constexpr size_t kUnit = 64;
constexpr size_t kPageBytes = 4096;
// Behind a cell, for loads of whole vectors.
constexpr size_t kPadding = Arena::kPadding;

}  // namespace

size_t CellRegion::Rounded(size_t bytes) { return (bytes + kPadding + kUnit - 1) / kUnit * kUnit; }

CellRegion::CellRegion(size_t bytes) : size_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes) {}

CellRegion::~CellRegion() {
  if (memory_ != nullptr) munmap(memory_, size_);
}

void CellRegion::AddFree(size_t offset, size_t bytes) {
  free_[offset] = bytes;
  by_size_.emplace(bytes, offset);
}

uint8_t* CellRegion::Take(size_t bytes) {
  if (bytes > size_) return nullptr;
  if (memory_ == nullptr) {
    void* const memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    memory_ = static_cast<uint8_t*>(memory);
    AddFree(0, size_);
  }
  const size_t rounded = Rounded(bytes);
  const auto found = by_size_.lower_bound({rounded, 0});
  if (found == by_size_.end()) return nullptr;
  const auto [piece, offset] = *found;
  by_size_.erase(found);
  free_.erase(offset);
  if (piece > rounded) AddFree(offset + rounded, piece - rounded);
  used_ += rounded;
  return memory_ + offset;
}

void CellRegion::Release(const uint8_t* cell, size_t bytes) {
  size_t offset = static_cast<size_t>(cell - memory_);
  size_t piece = Rounded(bytes);
  used_ -= piece;
  const auto behind = free_.lower_bound(offset);
  if (behind != free_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == offset) {
      offset = before->first;
      piece += before->second;
      by_size_.erase({before->second, before->first});
      free_.erase(before);
    }
  }
  if (behind != free_.end() && offset + piece == behind->first) {
    piece += behind->second;
    by_size_.erase({behind->second, behind->first});
    free_.erase(behind);
  }
  AddFree(offset, piece);
}

void CellRegion::GiveBack() {
  if (memory_ == nullptr) return;
  munmap(memory_, size_);
  memory_ = nullptr;
  free_.clear();
  by_size_.clear();
}

}  // namespace penstock
