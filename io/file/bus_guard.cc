#include "io/file/bus_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

#include "io/file/mapped_file.h"

namespace penstock {
namespace {

struct Range {
  std::atomic<bool> taken{false};
  std::atomic<bool> torn{false};
  // 0 while the range is not guarded. Written last and cleared first, so that an end that is read
  // between two equal beginnings belongs to them.
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
};

static_assert(std::atomic<uintptr_t>::is_always_lock_free, "the handler may not take a lock");

Range ranges[kMaxMappedFiles];
// The highest slot that was ever used, and one: what the handler looks through.
std::atomic<size_t> num_ranges{0};
// Constant once the handler is installed.
struct sigaction previous;
uintptr_t page_bytes = 4096;

Range* Find(uintptr_t address) {
  const size_t count = num_ranges.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    Range& range = ranges[i];
    const uintptr_t begin = range.begin.load(std::memory_order_acquire);
    const uintptr_t end = range.end.load(std::memory_order_acquire);
    if (begin != 0 && begin <= address && address < end &&
        range.begin.load(std::memory_order_acquire) == begin) {
      return &range;
    }
  }
  return nullptr;
}

void PassOn(int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    // The faulting instruction runs again when this returns, and ends the process as it should.
    struct sigaction fallback = {};
    fallback.sa_handler = SIG_DFL;
    sigaction(SIGBUS, &fallback, nullptr);
    // A signal that somebody sent is no fault that comes again.
    if (info->si_code <= 0) raise(SIGBUS);
  }
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  Range* range = info->si_code > 0 ? Find(address) : nullptr;
  if (range != nullptr) {
    range->torn.store(true, std::memory_order_release);
    // All that follows too: a file is cut at its end, and a torn map is not read any more.
    const uintptr_t page = address & ~(page_bytes - 1);
    void* zeros = mmap(reinterpret_cast<void*>(page), range->end.load() - page, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) range = nullptr;
  }
  if (range == nullptr) PassOn(signal, info, context);
  errno = saved_errno;
}

void Install() {
  page_bytes = sysconf(_SC_PAGESIZE);
  // What was there must be known before the handler can run.
  sigaction(SIGBUS, nullptr, &previous);
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

std::optional<size_t> GuardRange(const void* begin, size_t bytes) {
  static std::once_flag installed;
  std::call_once(installed, Install);
  for (size_t i = 0; i < kMaxMappedFiles; ++i) {
    Range& range = ranges[i];
    if (range.taken.exchange(true, std::memory_order_acquire)) continue;
    size_t count = num_ranges.load();
    while (count < i + 1 && !num_ranges.compare_exchange_weak(count, i + 1)) {
    }
    const auto address = reinterpret_cast<uintptr_t>(begin);
    range.torn.store(false, std::memory_order_relaxed);
    range.end.store(address + bytes, std::memory_order_release);
    range.begin.store(address, std::memory_order_release);
    return i;
  }
  return std::nullopt;
}

void ReleaseRange(size_t slot) {
  ranges[slot].begin.store(0, std::memory_order_release);
  ranges[slot].taken.store(false, std::memory_order_release);
}

bool RangeTorn(size_t slot) { return ranges[slot].torn.load(std::memory_order_acquire); }

}  // namespace penstock
