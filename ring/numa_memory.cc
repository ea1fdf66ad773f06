#include "ring/numa_memory.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace penstock::ring {
namespace {

constexpr int kBitsOfWord = 8 * sizeof(unsigned long);
constexpr uint64_t kMinStride = 2 << 20;
constexpr uint64_t kMaxLooks = 512;

}  // namespace

int PreferNumaNode(void* memory, uint64_t bytes, int node) {
  if (node < 0 || node >= kMaxNumaNodes) return EINVAL;
  std::array<unsigned long, kMaxNumaNodes / kBitsOfWord> mask = {};
  mask[static_cast<size_t>(node / kBitsOfWord)] = 1UL << (node % kBitsOfWord);
  // The kernel reads one bit less than it is told.
  return syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, mask.data(), kMaxNumaNodes + 1, 0) == 0
             ? 0
             : errno;
}

std::optional<uint64_t> BytesOnNumaNode(const void* memory, uint64_t bytes, int node) {
  const uint64_t parts = (bytes + kMinStride - 1) / kMinStride;
  const uint64_t stride = std::max<uint64_t>(1, (parts + kMaxLooks - 1) / kMaxLooks) * kMinStride;
  std::array<void*, kMaxLooks> pages;
  std::array<int, kMaxLooks> nodes;
  size_t looks = 0;
  for (uint64_t at = 0; at < bytes; at += stride)
    pages[looks++] = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(memory) + at);
  // Without nodes to move to it only tells.
  if (syscall(SYS_move_pages, 0, looks, pages.data(), nullptr, nodes.data(), 0) != 0)
    return std::nullopt;
  uint64_t found = 0;
  for (size_t i = 0; i < looks; ++i) {
    if (nodes[i] == node) found += std::min(stride, bytes - i * stride);
  }
  return found;
}

}  // namespace penstock::ring
