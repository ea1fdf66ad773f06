#include "base/staying_room.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

constexpr size_t kMinChunkBytes = 64 << 10;
// More is given back when nobody needs it any more.
constexpr size_t kKeptBytes = 1 << 20;
constexpr size_t kAlignment = 16;

constinit thread_local StayingRoom* current = nullptr;

}  // namespace

uint8_t* StayingRoom::Allocate(size_t bytes) {
  const size_t need = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (chunks_.empty() || chunks_.back().bytes - chunks_.back().used < need) {
    const size_t before = chunks_.empty() ? 0 : chunks_.back().bytes;
    const size_t chunk_bytes = std::max({need, kMinChunkBytes, std::min(2 * before, kKeptBytes)});
    chunks_.push_back({AllocateMemoryBlock(chunk_bytes + Arena::kPadding), chunk_bytes, 0});
  }
  Chunk& chunk = chunks_.back();
  uint8_t* const memory = chunk.memory.get() + chunk.used;
  chunk.used += need;
  return memory;
}

bool StayingRoom::Has(const uint8_t* bytes, size_t size) const {
  return std::any_of(chunks_.begin(), chunks_.end(), [&](const Chunk& chunk) {
    const uint8_t* const begin = chunk.memory.get();
    return bytes >= begin && bytes + size <= begin + chunk.used;
  });
}

void StayingRoom::Reset() {
  // The last chunk is the largest one, but for a string that was larger than all.
  if (chunks_.size() > 1) chunks_.erase(chunks_.begin(), chunks_.end() - 1);
  if (!chunks_.empty() && chunks_.back().bytes > kKeptBytes) chunks_.clear();
  if (!chunks_.empty()) chunks_.back().used = 0;
}

StayingRoom* StayingRoom::OfThisThread() { return current; }

uint8_t* StayingRoom::AllocateThereOr(Arena& arena, size_t bytes) {
  return current != nullptr ? current->Allocate(bytes) : arena.Allocate(bytes);
}

StayingRoom::Scope::Scope(StayingRoom* room) : outer_(current) { current = room; }
StayingRoom::Scope::~Scope() { current = outer_; }

std::shared_ptr<StayingRoom> StayingRooms::Take() {
  std::unique_ptr<StayingRoom> room;
  {
    std::lock_guard<std::mutex> lock(free_->mutex);
    if (!free_->rooms.empty()) {
      room = std::move(free_->rooms.back());
      free_->rooms.pop_back();
    }
  }
  if (room == nullptr) room = std::make_unique<StayingRoom>();
  // Weak: a room that is free still knows what owned it last, and with it this deleter.
  return {room.release(), [free = std::weak_ptr<Free>(free_)](StayingRoom* given_back) {
            std::unique_ptr<StayingRoom> room(given_back);
            room->Reset();
            const std::shared_ptr<Free> kept = free.lock();
            if (kept == nullptr) return;
            std::lock_guard<std::mutex> lock(kept->mutex);
            if (kept->rooms.size() < kMost) kept->rooms.push_back(std::move(room));
          }};
}

}  // namespace penstock
