#include "io/remote/cached_ranges.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/new_thread.h"

namespace penstock {
namespace {

// Disks take a few calls at a time, and one that hangs holds up one object only.
constexpr int kThreads = 4;

bool IsOfPages(const RangeJob& job) {
  const uint64_t end = job.offset + job.bytes;
  return job.offset % DiskCache::kPageBytes == 0 &&
         (end % DiskCache::kPageBytes == 0 || end == job.maker->state().size);
}

}  // namespace

std::string CacheName(const std::string& address, const ObjectState& state) {
  const bool is_strong = !state.etag.empty() && !absl::StartsWith(state.etag, "W/");
  if (state.generation.empty() && !is_strong) return "";
  return absl::StrCat(address, "\n", state.etag, "\n", state.generation, "\n", state.size);
}
std::string CacheName(const RequestMaker& maker) {
  return CacheName(maker.address(), maker.state());
}

// Lives as long as somebody fetches, who may end behind the destructor.
struct CachedRanges::Shared {
  struct Write {
    std::string name;
    RangeJob job;  // its `done` is called behind it, where there is one
    bool is_under_way = false;
  };

  Shared(std::unique_ptr<DiskCache> kept, RangeSource& source)
      : cache(std::move(kept)), network(source) {}

  // Bytes have come by the network.
  void Keep(std::string name, RangeJob job) {
    std::function<void(absl::Status)> done;
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (is_over || writes.size() < kWritesMax) done = std::exchange(job.done, nullptr);
      if (!is_over) writes.push_back({std::move(name), std::move(job)});
    }
    wake.notify_one();
    if (done) done(absl::OkStatus());
  }

  // Memory with the bytes of a job that are on their way to the disk; null: they are not. With the
  // mutex held.
  std::shared_ptr<uint8_t> OnTheWay(const std::string& name, const RangeJob& job) const {
    for (const Write& write : writes) {
      const uint64_t end = write.job.offset + write.job.bytes;
      if (write.name != name || job.offset < write.job.offset || job.offset + job.bytes > end)
        continue;
      return {write.job.to, write.job.to.get() + (job.offset - write.job.offset)};
    }
    return nullptr;
  }
  // The first that nobody writes; end(): there is none. Likewise.
  std::list<Write>::iterator NextWrite() {
    return std::find_if(writes.begin(), writes.end(),
                        [](const Write& write) { return !write.is_under_way; });
  }

  // The same of those that somebody waits for.
  std::list<Write>::iterator NextAwaited() {
    return std::find_if(writes.begin(), writes.end(), [](const Write& write) {
      return !write.is_under_way && write.job.done != nullptr;
    });
  }

  const std::unique_ptr<DiskCache> cache;
  RangeSource& network;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<RangeJob> wanted;  // under mutex, as all below
  std::deque<RangeJob> ahead;
  std::list<Write> writes;
  bool is_over = false;
};

CachedRanges::CachedRanges(std::unique_ptr<DiskCache> cache, RangeSource& network)
    : shared_(std::make_shared<Shared>(std::move(cache), network)) {
  for (int i = 0; i < kThreads; ++i) {
    absl::StatusOr<std::thread> thread =
        NewThread("cache folder", [shared = shared_] { Run(shared); });
    // Fewer of them look as well.
    if (!thread.ok()) break;
    threads_.push_back(*std::move(thread));
  }
}

CachedRanges::~CachedRanges() {
  std::vector<std::function<void(absl::Status)>> cancelled;
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->is_over = true;
    for (auto* const queue : {&shared_->wanted, &shared_->ahead}) {
      for (RangeJob& job : *queue) cancelled.push_back(std::move(job.done));
      queue->clear();
    }
  }
  shared_->wake.notify_all();
  for (const auto& done : cancelled) done(absl::CancelledError("nothing is fetched any more"));
  for (std::thread& thread : threads_) thread.join();
}

void CachedRanges::Fetch(RangeJob job) {
  // Without threads nothing is kept, and what is kept is not looked at.
  if (threads_.empty() || !IsOfPages(job) || CacheName(*job.maker).empty())
    return shared_->network.Fetch(std::move(job));
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    (job.is_wanted ? shared_->wanted : shared_->ahead).push_back(std::move(job));
  }
  shared_->wake.notify_one();
}

int CachedRanges::AtOnce() const { return shared_->network.AtOnce(); }

void CachedRanges::Passed(const RequestMaker& maker, const FetchCounters* counters) {
  if (const std::string name = CacheName(maker); !name.empty())
    shared_->cache->Passed(name, counters);
}

std::shared_ptr<void> CachedRanges::Need(std::shared_ptr<const FetchCounters> counters,
                                         std::vector<std::string> names) {
  std::erase(names, "");
  return shared_->cache->Need(std::move(counters), names);
}

void CachedRanges::Run(const std::shared_ptr<Shared>& shared_by_all) {
  Shared& shared = *shared_by_all;
  std::unique_lock<std::mutex> lock(shared.mutex);
  while (true) {
    shared.wake.wait(lock, [&shared] {
      return shared.is_over || !shared.wanted.empty() || !shared.ahead.empty() ||
             shared.NextWrite() != shared.writes.end();
    });
    std::deque<RangeJob>& reads = shared.wanted.empty() ? shared.ahead : shared.wanted;
    // Reads go first, unless somebody waits until the disk has taken what has come for him: reads
    // may never end.
    auto write = shared.NextAwaited();
    if (write == shared.writes.end() && reads.empty()) {
      write = shared.NextWrite();
      if (write == shared.writes.end()) return;
    }
    if (write != shared.writes.end()) {
      write->is_under_way = true;
      lock.unlock();
      const RangeJob& job = write->job;
      shared.cache->Write(write->name, job.maker->state().size, job.offset,
                          {job.to.get(), job.bytes}, job.counters.get());
      if (job.done) job.done(absl::OkStatus());
      lock.lock();
      shared.writes.erase(write);
      continue;
    }
    RangeJob job = std::move(reads.front());
    reads.pop_front();
    std::string name = CacheName(*job.maker);
    const std::shared_ptr<uint8_t> on_the_way = shared.OnTheWay(name, job);
    lock.unlock();
    if (on_the_way != nullptr) std::memcpy(job.to.get(), on_the_way.get(), job.bytes);
    if (on_the_way != nullptr ||
        shared.cache->Read(name, job.maker->state().size, job.offset, {job.to.get(), job.bytes},
                           job.counters.get())) {
      if (job.counters != nullptr) job.counters->cached_bytes.fetch_add(job.bytes);
      job.done(absl::OkStatus());
    } else {
      RangeJob asked = job;
      asked.done = [shared_by_all, name = std::move(name), job](absl::Status status) mutable {
        if (!status.ok()) return job.done(std::move(status));
        shared_by_all->Keep(std::move(name), std::move(job));
      };
      shared.network.Fetch(std::move(asked));
    }
    job = {};
    lock.lock();
  }
}

}  // namespace penstock
