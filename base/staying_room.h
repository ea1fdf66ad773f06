// Memory for strings that the work on a block of rows makes, and that stay until the block's batch
// is laid out: who keeps them until then keeps the room, and copies nothing.
//
// Threads:  Allocate() and Has() by the thread whose room it is; whoever holds it may read there.
// Owns:     its chunks. What is made of many bytes is given back by Reset().
// Cost:     an addition; malloc only while the need still grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/arena.h"
#include "base/memory_block.h"

namespace penstock {

class StayingRoom : public std::enable_shared_from_this<StayingRoom> {
 public:
  // `bytes` uninitialised bytes; Arena::kPadding bytes behind them may be read.
  uint8_t* Allocate(size_t bytes);
  // Whether these bytes were allocated here.
  bool Has(const uint8_t* bytes, size_t size) const;
  // Nothing is allocated any more.
  void Reset();

  // The room of what this thread runs; null: it has none, and an arena does as well.
  static StayingRoom* OfThisThread();
  // There, or in the arena.
  static uint8_t* AllocateThereOr(Arena& arena, size_t bytes);

  class Scope {
   public:
    // `room` may be null. It must outlive the scope.
    explicit Scope(StayingRoom* room);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StayingRoom* const outer_;
  };

 private:
  struct Chunk {
    MemoryBlock memory;
    size_t bytes;
    size_t used;
  };
  std::vector<Chunk> chunks_;  // the last one is being filled
};

// Rooms that are used again, the one that became free last first: its memory is in a cache still.
//
// Threads:  safe from any thread; a room comes back when the last one lets go of it, on any thread,
//           even behind the end of this object.
// Limits:   keeps kMost rooms.
class StayingRooms {
 public:
  static constexpr size_t kMost = 32;

  // One with nothing in it.
  std::shared_ptr<StayingRoom> Take();

 private:
  struct Free {
    std::mutex mutex;
    std::vector<std::unique_ptr<StayingRoom>> rooms;  // under mutex
  };
  const std::shared_ptr<Free> free_ = std::make_shared<Free>();
};

}  // namespace penstock
