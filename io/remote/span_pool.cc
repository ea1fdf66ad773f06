#include "io/remote/span_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>

#include "base/memory_account.h"
#include "base/memory_block.h"
#include "io/remote/remote_bytes.h"

namespace penstock {

// Memory that nobody uses at present, by its size in kUnit. It outlives the pool while somebody
// still has some.
struct SpanPool::Blocks {
  static constexpr uint64_t kUnit = uint64_t{1} << 20;
  static constexpr uint64_t kKeptUnits = 16 * kBlockBytes / kUnit;

  std::mutex mutex;
  std::array<std::vector<MemoryBlock>, kBlockBytes / kUnit + 1> idle;  // under mutex
  uint64_t idle_units = 0;                                             // under mutex
  // Of all that was taken and is not idle: of spans, and lent.
  std::atomic<uint64_t> used_units{0};
};

std::shared_ptr<SpanPool::Blocks> SpanPool::MakeBlocks() { return std::make_shared<Blocks>(); }

uint64_t SpanPool::block_bytes() const {
  const uint64_t share = bytes_max_ / (4 * static_cast<uint64_t>(std::max(readers_, 1)));
  uint64_t bytes = kBlockBytes;
  while (bytes > kFirstBytes && bytes > share) bytes /= 2;
  return bytes;
}

uint64_t SpanPool::ahead_bytes(int at_once) const {
  const auto readers = static_cast<uint64_t>(std::max(readers_, 1));
  const uint64_t useful = (static_cast<uint64_t>(std::max(at_once, 0)) + readers) * block_bytes();
  return std::clamp<uint64_t>(std::min(useful, bytes_max_ / 2) / readers, kFirstBytes,
                              uint64_t{256} << 20);
}

uint64_t SpanPool::first_window(int at_once) const {
  return std::clamp(farthest_window_ / 2, kFirstBytes, ahead_bytes(at_once));
}

bool SpanPool::MakeRoom(uint64_t bytes, bool is_wanted) {
  while (bytes_ + bytes > bytes_max_) {
    Span* first = nullptr;
    for (const std::list<Span*>* queue : {&passed_in_order_, &passed_, &looked_}) {
      if (first == nullptr && !queue->empty()) first = queue->front();
    }
    if (first == nullptr) break;
    // Who only reads ahead takes nothing from those who have not read theirs yet.
    if (!is_wanted && !first->was_passed) return false;
    first->owner->Forget(first);
  }
  return is_wanted || bytes_ + bytes <= bytes_max_;
}

std::shared_ptr<uint8_t> SpanPool::Take(uint64_t bytes, bool is_wanted) {
  // What is near is all pipelines' own, and has a limit of its own: it is charged to none.
  const MemoryAccount::Scope nobody(nullptr);
  if (!MakeRoom(bytes, is_wanted)) return nullptr;
  bytes_ += bytes;
  const uint64_t units = (bytes + Blocks::kUnit - 1) / Blocks::kUnit;
  // What is small comes and goes within what the allocator has.
  if (bytes < Blocks::kUnit || units >= blocks_->idle.size())
    return std::shared_ptr<uint8_t>(AllocateMemoryBlock(bytes));
  MemoryBlock block;
  {
    std::lock_guard<std::mutex> lock(blocks_->mutex);
    std::vector<MemoryBlock>& idle = blocks_->idle[units];
    if (!idle.empty()) {
      block = std::move(idle.back());
      idle.pop_back();
      blocks_->idle_units -= units;
    }
  }
  if (block == nullptr) block = AllocateMemoryBlock(units * Blocks::kUnit);
  uint8_t* const memory = block.release();
  blocks_->used_units.fetch_add(units, std::memory_order_relaxed);
  return std::shared_ptr<uint8_t>(memory, [blocks = blocks_, units](uint8_t* gone) {
    MemoryBlock returned(gone);
    blocks->used_units.fetch_sub(units, std::memory_order_relaxed);
    std::lock_guard<std::mutex> lock(blocks->mutex);
    if (blocks->idle_units + units > Blocks::kKeptUnits) return;
    blocks->idle_units += units;
    blocks->idle[units].push_back(std::move(returned));
  });
}

bool SpanPool::MayLend() const {
  const uint64_t used = blocks_->used_units.load(std::memory_order_relaxed) * Blocks::kUnit;
  return used <= bytes_ + bytes_max_ / 16;
}

void SpanPool::Add(Span* span) {
  if (span->queue != nullptr || span->pins > 0 || span->state != Span::State::kHere) return;
  span->queue = !span->was_passed ? &looked_ : span->is_in_order ? &passed_in_order_ : &passed_;
  span->place = span->queue->insert(span->queue->end(), span);
  if (span->queue != &passed_in_order_) return;
  passed_in_order_bytes_ += span->bytes;
  ForgetPassed();
}

void SpanPool::ForgetPassed() {
  // A record that goes on in the next block is read again from its beginning.
  const uint64_t kept = block_bytes() * static_cast<uint64_t>(std::max(readers_, 1));
  while (passed_in_order_bytes_ > kept && passed_in_order_.size() > 1) {
    Span* const first = passed_in_order_.front();
    first->owner->Forget(first);
  }
}

void SpanPool::TakeOut(Span* span) {
  if (span->queue == nullptr) return;
  if (span->queue == &passed_in_order_) passed_in_order_bytes_ -= span->bytes;
  span->queue->erase(span->place);
  span->queue = nullptr;
}

void SpanPool::Touch(Span* span, bool passed) {
  span->was_passed |= passed;
  TakeOut(span);
  Add(span);
}

void SpanPool::Remove(Span* span) {
  TakeOut(span);
  bytes_ -= span->bytes;
}

}  // namespace penstock
