#include "io/remote/fetch_to_disk.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/fetch_numbers.h"
#include "base/file.h"
#include "base/shown_url.h"
#include "base/stop_flag.h"
#include "io/remote/cached_ranges.h"
#include "io/remote/disk_cache.h"
#include "io/remote/remote_client.h"

namespace penstock {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{8} << 20;
constexpr uint64_t kBlocksMax = 64;
constexpr std::chrono::milliseconds kLookTime(100);

struct Wanted {
  std::shared_ptr<RequestMaker> maker;
  std::shared_ptr<FetchCounters> counters = std::make_shared<FetchCounters>();
  absl::Status status;  // under Board::mutex
};

// What is under way. Lives as long as somebody fetches.
struct Board {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t under_way = 0;  // under mutex, as all below
  uint64_t done_bytes = 0;
  size_t last = 0;  // whose bytes came last
};

// By their paths, so that what two patterns name is there once.
absl::StatusOr<std::map<std::string, FoundObject>> FindObjects(
    RemoteClient& client, const std::vector<std::string>& patterns) {
  std::map<std::string, FoundObject> objects;
  for (const std::string& pattern : patterns) {
    const absl::StatusOr<RemoteUrl> url = ParseRemoteUrl(pattern);
    if (!url.ok()) return url.status();
    absl::StatusOr<std::vector<FoundObject>> found = client.List(*url);
    if (!found.ok()) return found.status();
    if (found->empty())
      return absl::NotFoundError(absl::StrCat("no object matches the glob ", ShownUrl(pattern)));
    for (FoundObject& object : *found) {
      std::string path = object.url.text();
      objects.insert_or_assign(std::move(path), std::move(object));
    }
  }
  return objects;
}

}  // namespace

absl::StatusOr<std::vector<FetchedObject>> FetchToDisk(const std::vector<std::string>& patterns,
                                                       const RemoteOptions& options,
                                                       Environment environment,
                                                       FetchProgress progress) {
  RemoteClient client(options, std::move(environment));
  const absl::StatusOr<std::map<std::string, FoundObject>> objects = FindObjects(client, patterns);
  if (!objects.ok()) return objects.status();
  absl::StatusOr<std::unique_ptr<DiskCache>> cache =
      DiskCache::Open(options.cache_folder, options.cache_bytes);
  if (!cache.ok()) return cache.status();

  std::vector<FetchedObject> fetched;
  std::vector<std::shared_ptr<Wanted>> wanted;
  uint64_t total = 0;
  for (const auto& [path, object] : *objects) {
    absl::StatusOr<std::shared_ptr<RequestMaker>> maker = client.MakerOf(object.url, object.state);
    if (!maker.ok()) return maker.status();
    FetchedObject& one = fetched.emplace_back();
    one.path = path;
    one.bytes = object.state.size;
    one.has_tag = !CacheName(**maker).empty();
    wanted.push_back(std::make_shared<Wanted>());
    wanted.back()->maker = *std::move(maker);
    if (one.has_tag) total += one.bytes;
  }

  RangeFetcher::Options of_fetcher;
  of_fetcher.most_under_way = options.requests_max;
  of_fetcher.give_up_ns = int64_t{1'000'000} * options.give_up_ms;
  RangeFetcher network(of_fetcher);
  const auto board = std::make_shared<Board>();
  const uint64_t blocks_max =
      std::clamp<uint64_t>(options.memory_bytes / kBlockBytes, 1, kBlocksMax);
  const auto show = [&](std::unique_lock<std::mutex>& lock) {
    const uint64_t done = board->done_bytes;
    const size_t last = board->last;
    lock.unlock();
    uint64_t by_network = 0;
    for (const auto& one : wanted) by_network += one->counters->bytes.load();
    progress(done, by_network, total, fetched[last].path);
    lock.lock();
  };
  {
    // Its end waits for what is to be written.
    CachedRanges ranges(*std::move(cache), network);
    for (size_t i = 0; i < wanted.size(); ++i) {
      for (uint64_t at = 0; fetched[i].has_tag && at < fetched[i].bytes; at += kBlockBytes) {
        std::unique_lock<std::mutex> lock(board->mutex);
        while (board->under_way >= blocks_max && !IsStopped()) {
          board->changed.wait_for(lock, kLookTime);
          show(lock);
        }
        // What could not be had is not asked for block by block.
        if (IsStopped() || !wanted[i]->status.ok()) break;
        ++board->under_way;
        lock.unlock();
        RangeJob job;
        job.maker = wanted[i]->maker;
        job.offset = at;
        job.bytes = std::min(kBlockBytes, fetched[i].bytes - at);
        job.to = std::shared_ptr<uint8_t>(new uint8_t[job.bytes], std::default_delete<uint8_t[]>());
        job.counters = wanted[i]->counters;
        job.done = [board, object = wanted[i], i, bytes = job.bytes](absl::Status status) {
          std::lock_guard<std::mutex> done(board->mutex);
          --board->under_way;
          board->last = i;
          if (status.ok()) board->done_bytes += bytes;
          if (object->status.ok()) object->status = std::move(status);
          board->changed.notify_all();
        };
        ranges.Fetch(std::move(job));
      }
    }
    std::unique_lock<std::mutex> lock(board->mutex);
    while (board->under_way > 0 && !IsStopped()) {
      board->changed.wait_for(lock, kLookTime);
      show(lock);
    }
    show(lock);
  }
  if (IsStopped()) return absl::CancelledError("what has come is in the folder");

  const absl::StatusOr<std::unique_ptr<DiskCache>> kept =
      DiskCache::Open(options.cache_folder, options.cache_bytes);
  if (!kept.ok()) return kept.status();
  for (size_t i = 0; i < wanted.size(); ++i) {
    fetched[i].fetched_bytes = wanted[i]->counters->bytes.load();
    fetched[i].kept_bytes = (*kept)->KeptBytes(CacheName(*wanted[i]->maker), fetched[i].bytes);
    std::lock_guard<std::mutex> lock(board->mutex);
    fetched[i].status = wanted[i]->status;
  }
  return fetched;
}

}  // namespace penstock
