#include "base/kept_descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>

namespace penstock {
namespace {

std::atomic<size_t> kept{0};

size_t Limit() {
  static const size_t limit = [] {
    struct rlimit now {};
    if (getrlimit(RLIMIT_NOFILE, &now) != 0) return size_t{256};
    return static_cast<size_t>(std::min<rlim_t>(now.rlim_cur, 65536));
  }();
  return limit;
}

}  // namespace

size_t KeptDescriptorsMax() { return Limit() / 4; }

bool KeepDescriptor() {
  if (kept.fetch_add(1, std::memory_order_relaxed) < KeptDescriptorsMax()) return true;
  kept.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void LetGoOfDescriptor() { kept.fetch_sub(1, std::memory_order_relaxed); }

size_t FilesOpenedAhead() { return std::clamp<size_t>(Limit() / 64, 1, 64); }

}  // namespace penstock
