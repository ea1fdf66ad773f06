// Where ids go, one behind the other: a vector without the cost of one.
//
// Threads:  one thread.
// Owns:     its memory, from Reserve() on until it goes.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "absl/types/span.h"

namespace penstock::text {

class IdBuffer {
 public:
  void Append(uint32_t id) {
    Reserve(1);
    ids_[count_++] = id;
  }
  void Append(absl::Span<const uint32_t> ids) {
    if (ids.empty()) return;
    Reserve(ids.size());
    std::memcpy(ids_.get() + count_, ids.data(), ids.size() * sizeof(uint32_t));
    count_ += ids.size();
  }
  // Reads three ids whatever `count` is.
  void AppendUpTo3(const uint32_t* ids, uint32_t count) {
    Reserve(3);
    std::memcpy(ids_.get() + count_, ids, 3 * sizeof(uint32_t));
    count_ += count;
  }
  void Reserve(size_t more) {
    if (count_ + more > capacity_) [[unlikely]]
      Grow(more);
  }
  void Clear() { count_ = 0; }
  // Gives memory back that a large text took.
  void Shrink() {
    if (capacity_ <= kKeptMax) return;
    ids_.reset();
    capacity_ = count_ = 0;
  }
  void Cut(size_t count) { count_ = count < count_ ? count : count_; }
  void Erase(size_t from, size_t count) {
    std::memmove(ids_.get() + from, ids_.get() + from + count,
                 (count_ - from - count) * sizeof(uint32_t));
    count_ -= count;
  }

  size_t size() const { return count_; }
  const uint32_t* data() const { return ids_.get(); }
  absl::Span<const uint32_t> span() const { return {ids_.get(), count_}; }

 private:
  static constexpr size_t kKeptMax = size_t{1} << 20;

  void Grow(size_t more) {
    const size_t wanted = (count_ + more) * 2 + 256;
    std::unique_ptr<uint32_t[]> larger(new uint32_t[wanted]);
    if (count_ > 0) std::memcpy(larger.get(), ids_.get(), count_ * sizeof(uint32_t));
    ids_ = std::move(larger);
    capacity_ = wanted;
  }

  std::unique_ptr<uint32_t[]> ids_;
  size_t count_ = 0, capacity_ = 0;
};

}  // namespace penstock::text
