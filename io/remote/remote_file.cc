#include "io/remote/remote_file.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/stop_flag.h"

namespace penstock {
namespace {

// Who reads on after as much as this still reads from front to back: by headers, over records.
constexpr uint64_t kStepBytes = 1 << 20;
// At most so much is looked at of an end.
constexpr uint64_t kLookBytes = 4096;

// How long nobody looks whether what is waited for is wanted still.
constexpr std::chrono::milliseconds kLookTime(50);

// A completion that is ended once, by what arrives or by who cancels.
struct Ending {
  std::mutex mutex;
  std::optional<Completion> completion;  // under mutex
  bool is_cancelled = false;             // under mutex
  std::weak_ptr<RemoteBytes> bytes;      // under mutex; of what it waits for
  uint64_t demand = 0;                   // under mutex

  // False: it was cancelled before, and has ended.
  bool Take(Completion given) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!is_cancelled) {
        completion = std::move(given);
        return true;
      }
    }
    given.End(Cancelled());
    return false;
  }
  void End(const absl::Status& status) {
    std::optional<Completion> taken;
    {
      std::lock_guard<std::mutex> lock(mutex);
      taken.swap(completion);
    }
    if (taken) taken->End(status);
  }
  // What has been asked for; given up at once where it was cancelled meanwhile.
  void Asked(const std::shared_ptr<RemoteBytes>& of, uint64_t number) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      bytes = of;
      demand = number;
      if (!is_cancelled) return;
    }
    of->GiveUp(number);
  }
  void Cancel() {
    std::shared_ptr<RemoteBytes> of;
    uint64_t number = 0;
    {
      std::lock_guard<std::mutex> lock(mutex);
      is_cancelled = true;
      of = bytes.lock();
      number = demand;
    }
    if (of != nullptr) of->GiveUp(number);
    End(Cancelled());
  }

  static absl::Status Cancelled() { return absl::CancelledError("not wanted any more"); }
};

struct Bell {
  std::mutex mutex;
  std::condition_variable rung;
  bool has_rung = false;
};

}  // namespace

// Counts a read from when it is waited for until it is not. Copies are one.
class RemoteFile::Waiting {
 public:
  explicit Waiting(const std::shared_ptr<FetchCounters>& counters) : counters_(counters) {
    if (counters_ == nullptr) return;
    counters_->misses.fetch_add(1, std::memory_order_relaxed);
    counters_->waiting.fetch_add(1, std::memory_order_relaxed);
  }
  ~Waiting() {
    if (counters_ != nullptr) counters_->waiting.fetch_sub(1, std::memory_order_relaxed);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  const std::shared_ptr<FetchCounters> counters_;
};

std::optional<absl::StatusOr<size_t>> RemoteFile::ReadFetched(uint64_t offset,
                                                              absl::Span<uint8_t> out) {
  std::optional<absl::StatusOr<size_t>> read = bytes_->Read(offset, out, counters_.get());
  if (read && counters_ != nullptr) counters_->reads.fetch_add(1, std::memory_order_relaxed);
  return read;
}

std::shared_ptr<const uint8_t> RemoteFile::LendFetched(uint64_t offset, uint64_t bytes) {
  std::shared_ptr<const uint8_t> lent = bytes_->Lend(offset, bytes, kLentPadding, counters_.get());
  if (lent != nullptr && counters_ != nullptr)
    counters_->reads.fetch_add(1, std::memory_order_relaxed);
  return lent;
}

void RemoteFile::Ask(uint64_t offset, uint64_t bytes, bool alone, Completion arrived) {
  const auto ending = std::make_shared<Ending>();
  // What was asked for goes on; nobody waits for it any more. Who is being stopped cancels before
  // this returns.
  arrived.OnCancel([ending] { ending->Cancel(); });
  if (!ending->Take(std::move(arrived))) return;
  std::shared_ptr<Waiting> waiting;
  if (!bytes_->Has(offset, bytes)) waiting = std::make_shared<Waiting>(counters_);
  // Who has been told may let go of this file.
  const std::shared_ptr<RemoteBytes> of = bytes_;
  const uint64_t demand = of->Want(
      offset, bytes, alone, counters_,
      [ending, waiting = std::move(waiting)](const absl::Status& status) mutable {
        waiting.reset();
        ending->End(status);
      },
      this);
  ending->Asked(of, demand);
}

absl::StatusOr<size_t> RemoteFile::ReadAt(uint64_t offset, absl::Span<uint8_t> out) {
  while (true) {
    if (std::optional<absl::StatusOr<size_t>> read = ReadFetched(offset, out)) {
      read_to_.store(offset + out.size(), std::memory_order_relaxed);
      return *std::move(read);
    }
    const auto bell = std::make_shared<Bell>();
    const uint64_t last = read_to_.load(std::memory_order_relaxed);
    // A look at the ends, as for an index, does not say that the file is gone through.
    const bool is_end = out.size() <= kLookBytes && (offset == 0 || offset + out.size() == size());
    const bool goes_on = !is_end && offset >= last && offset - last <= kStepBytes;
    const Waiting waiting(counters_);
    const uint64_t demand = bytes_->Want(
        offset, out.size(), /*alone=*/!goes_on, counters_,
        [bell](const absl::Status&) {
          std::lock_guard<std::mutex> lock(bell->mutex);
          bell->has_rung = true;
          bell->rung.notify_all();
        },
        this);
    std::unique_lock<std::mutex> lock(bell->mutex);
    // A stop waits for no server.
    while (!bell->rung.wait_for(lock, kLookTime, [&bell] { return bell->has_rung; })) {
      if (!IsStopped()) continue;
      lock.unlock();
      bytes_->GiveUp(demand);
      return Ending::Cancelled();
    }
  }
}

}  // namespace penstock
