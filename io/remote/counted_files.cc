#include "io/remote/counted_files.h"

#include <algorithm>

#include "io/remote/remote_file_system.h"

namespace penstock {

void CountedFiles::BeginAnew() {
  std::lock_guard<std::mutex> lock(mutex_);
  counters_ = std::make_shared<FetchCounters>();
}

std::shared_ptr<FetchCounters> CountedFiles::counters() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

FileSystem& CountedFiles::local() const { return files_.local(); }
FileSystem& CountedFiles::CountedFor(const std::string& pipeline) {
  return files_.CountedFor(pipeline);
}
Disk* CountedFiles::disk() { return files_.disk(); }

absl::StatusOr<std::shared_ptr<RandomAccessFile>> CountedFiles::Open(const std::string& path) {
  return files_.Open(path, counters());
}
absl::StatusOr<std::shared_ptr<RandomAccessFile>> CountedFiles::OpenListed(const ListedFile& file) {
  if (auto known = files_.OpenKnown(file, counters())) return *std::move(known);
  return FileSystem::OpenListed(file);
}
absl::StatusOr<std::vector<ListedFile>> CountedFiles::List(const std::string& pattern) {
  return files_.List(pattern);
}
std::vector<absl::StatusOr<std::vector<ListedFile>>> CountedFiles::ListEach(
    const std::vector<std::string>& patterns) {
  return files_.ListEach(patterns);
}

std::shared_ptr<void> CountedFiles::Need(const std::vector<ListedFile>& files) {
  return files_.Need(files, counters());
}
std::optional<uint64_t> CountedFiles::TrustedTag(const ListedFile& file) {
  return files_.TrustedTag(file);
}

std::optional<FetchNumbers> CountedFiles::numbers() const {
  const std::shared_ptr<FetchCounters> counted = counters();
  const auto of = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  FetchNumbers numbers = files_.NumbersOfAll();
  // A miss is looked at once more when its bytes have come.
  const uint64_t misses = of(counted->misses);
  const uint64_t reads = of(counted->reads);
  if (reads + misses == 0 && of(counted->requests) == 0 && of(counted->cached_bytes) == 0)
    return std::nullopt;
  numbers.bytes = of(counted->bytes);
  numbers.requests = of(counted->requests);
  numbers.retries = of(counted->retries);
  numbers.hedges = of(counted->hedges);
  numbers.hits = reads - std::min(reads, misses);
  numbers.misses = misses;
  numbers.cached_bytes = of(counted->cached_bytes);
  numbers.waiting = static_cast<uint64_t>(std::max<int64_t>(of(counted->waiting), 0));
  return numbers;
}

}  // namespace penstock
