#include "ring/memory_promise.h"

namespace penstock::ring {
namespace {

std::atomic<uint64_t> total{0};

}  // namespace

void MemoryPromise::More(uint64_t bytes) {
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  total.fetch_add(bytes, std::memory_order_relaxed);
}

void MemoryPromise::Less(uint64_t bytes) {
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  total.fetch_sub(bytes, std::memory_order_relaxed);
}

uint64_t MemoryPromise::Total() { return total.load(std::memory_order_relaxed); }

}  // namespace penstock::ring
