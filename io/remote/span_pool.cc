#include "io/remote/span_pool.h"

#include <algorithm>
#include <map>

#include "base/memory_block.h"
#include "io/remote/remote_bytes.h"

namespace penstock {

// Whole blocks that nobody uses at present. It outlives the pool while somebody still has a block.
struct SpanPool::Blocks {
  static constexpr size_t kKept = 16;

  std::mutex mutex;
  std::vector<MemoryBlock> idle;
};

std::shared_ptr<SpanPool::Blocks> SpanPool::MakeBlocks() { return std::make_shared<Blocks>(); }

uint64_t SpanPool::block_bytes() const {
  const uint64_t share = bytes_max_ / (4 * static_cast<uint64_t>(std::max(readers_, 1)));
  uint64_t bytes = kBlockBytes;
  while (bytes > kFirstBytes && bytes > share) bytes /= 2;
  return bytes;
}

uint64_t SpanPool::ahead_bytes() const {
  return std::clamp<uint64_t>(bytes_max_ / 2 / static_cast<uint64_t>(std::max(readers_, 1)),
                              kFirstBytes, uint64_t{256} << 20);
}

bool SpanPool::MakeRoom(uint64_t bytes, bool is_wanted) {
  while (bytes_ + bytes > bytes_max_ && !going_.empty()) {
    Span* const first = going_.front();
    // Who only reads ahead takes nothing from those who have not read theirs yet.
    if (!is_wanted && !first->was_passed) return false;
    first->owner->Forget(first);
  }
  return is_wanted || bytes_ + bytes <= bytes_max_;
}

std::shared_ptr<uint8_t> SpanPool::Take(uint64_t bytes, bool is_wanted) {
  if (!MakeRoom(bytes, is_wanted)) return nullptr;
  bytes_ += bytes;
  if (bytes != kBlockBytes) return std::shared_ptr<uint8_t>(AllocateMemoryBlock(bytes));
  MemoryBlock block;
  {
    std::lock_guard<std::mutex> lock(blocks_->mutex);
    if (!blocks_->idle.empty()) {
      block = std::move(blocks_->idle.back());
      blocks_->idle.pop_back();
    }
  }
  if (block == nullptr) block = AllocateMemoryBlock(bytes);
  uint8_t* const memory = block.release();
  return std::shared_ptr<uint8_t>(memory, [blocks = blocks_](uint8_t* gone) {
    MemoryBlock returned(gone);
    std::lock_guard<std::mutex> lock(blocks->mutex);
    if (blocks->idle.size() < Blocks::kKept) blocks->idle.push_back(std::move(returned));
  });
}

void SpanPool::Add(Span* span) {
  if (span->may_go || span->pins > 0 || span->state != Span::State::kHere) return;
  span->place =
      span->was_passed ? going_.insert(going_.begin(), span) : going_.insert(going_.end(), span);
  span->may_go = true;
}

void SpanPool::Touch(Span* span, bool passed) {
  span->was_passed |= passed;
  if (span->may_go) {
    going_.erase(span->place);
    span->may_go = false;
  }
  Add(span);
}

void SpanPool::Remove(Span* span) {
  if (span->may_go) going_.erase(span->place);
  span->may_go = false;
  bytes_ -= span->bytes;
}

}  // namespace penstock
