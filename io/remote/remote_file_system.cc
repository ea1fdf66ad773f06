#include "io/remote/remote_file_system.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "base/monotonic_clock.h"
#include "base/nanoseconds.h"
#include "base/pending_call.h"
#include "base/side_by_side.h"
#include "io/record/index_store.h"
#include "io/remote/remote_file.h"

namespace penstock {
namespace {

std::string NameOf(const std::string& path, const ObjectState& state) {
  return absl::StrCat(path, "\n", state.etag, "\n", state.generation, "\n", state.last_modified,
                      "\n", state.size);
}

RangeFetcher::Options FetcherOptions(const RemoteOptions& options) {
  RangeFetcher::Options made;
  made.most_under_way = options.requests_max;
  made.give_up_ns = kNsPerMs * options.give_up_ms;
  return made;
}

}  // namespace

RemoteFileSystem::RemoteFileSystem(FileSystem& local, RemoteOptions options,
                                   Environment environment)
    : local_(local),
      memory_bytes_max_(options.memory_bytes),
      trusts_etags_(options.trusts_etags),
      client_(options, std::move(environment)),
      pool_(options.memory_bytes),
      fetcher_(FetcherOptions(options)) {
  if (Disk* const disk = local_.disk(); disk != nullptr)
    disk_ = std::make_unique<ObjectDisk>(client_, *disk, options.writes);
  if (options.cache_folder.empty()) return;
  absl::StatusOr<std::unique_ptr<DiskCache>> cache =
      DiskCache::Open(options.cache_folder, options.cache_bytes);
  status_ = cache.status();
  if (cache.ok()) cached_ = std::make_unique<CachedRanges>(*std::move(cache), fetcher_);
}

uint64_t RemoteFileSystem::pool_bytes() {
  std::lock_guard<std::mutex> lock(pool_.mutex());
  return pool_.bytes();
}

void RemoteFileSystem::Remember(const std::string& path, const ObjectState& state) {
  std::lock_guard<std::mutex> lock(mutex_);
  // Whose turn it is to go is no matter: who misses one asks the server.
  if (known_.size() >= kKnownMax) known_.erase(known_.begin());
  known_[path] = state;
  if (absent_.empty() && looks_.empty()) return;
  const std::string index = IndexPathBeside(path);
  absent_.erase(index);
  looks_.erase(index);
}

absl::Status RemoteFileSystem::Absence(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = absent_.find(path);
  if (found == absent_.end()) return absl::OkStatus();
  if (MonotonicNs() - found->second.told_ns < kAbsentNs) return found->second.status;
  absent_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> RemoteFileSystem::OpenObject(
    const std::string& path, ObjectState state, const Counters& counters) {
  const FileVersion version = VersionOf(state);
  const std::string name = NameOf(path, state);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = open_.find(name); found != open_.end()) {
      if (std::shared_ptr<RemoteBytes> bytes = found->second.lock())
        return std::make_shared<RemoteFile>(path, version, std::move(bytes), counters);
    }
  }
  const absl::StatusOr<RemoteUrl> url = ParseRemoteUrl(path);
  if (!url.ok()) return url.status();
  absl::StatusOr<std::shared_ptr<RequestMaker>> maker = client_.MakerOf(*url, std::move(state));
  if (!maker.ok()) return maker.status();
  RangeSource& source = cached_ != nullptr ? static_cast<RangeSource&>(*cached_) : fetcher_;
  auto bytes = std::make_shared<RemoteBytes>(*std::move(maker), pool_, source);
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_.size() >= 1024) {
    std::erase_if(open_, [](const auto& entry) { return entry.second.expired(); });
  }
  open_[name] = bytes;
  return std::make_shared<RemoteFile>(path, version, std::move(bytes), counters);
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> RemoteFileSystem::Open(const std::string& path) {
  return Open(path, nullptr);
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> RemoteFileSystem::OpenListed(
    const ListedFile& file) {
  if (auto known = OpenKnown(file, nullptr)) return *std::move(known);
  return FileSystem::OpenListed(file);
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> RemoteFileSystem::Open(const std::string& path,
                                                                         const Counters& counters) {
  if (!IsAddress(path)) return local_.Open(path);
  const absl::StatusOr<RemoteUrl> url = ParseRemoteUrl(path);
  if (!url.ok()) return url.status();
  // Making a pipeline looks for the same indices several times.
  const bool is_index = absl::EndsWith(path, kIndexSuffix);
  uint64_t look = 0;
  if (is_index) {
    if (absl::Status absence = Absence(path); !absence.ok()) return absence;
    std::lock_guard<std::mutex> lock(mutex_);
    look = looks_[path] = ++look_number_;
  }
  const PendingCall call("opening", path);
  absl::StatusOr<ObjectState> state = client_.Describe(*url);
  if (is_index) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = looks_.find(path);
    const bool counts = found != looks_.end() && found->second == look;
    if (counts) looks_.erase(found);
    // Who may not list is told so of what is not there.
    const bool is_absent =
        absl::IsNotFound(state.status()) || absl::IsPermissionDenied(state.status());
    if (counts && is_absent) {
      if (absent_.size() >= kAbsentMax) absent_.clear();
      absent_[path] = {state.status(), MonotonicNs()};
    }
  }
  if (!state.ok()) return state.status();
  Remember(path, *state);
  return OpenObject(path, *std::move(state), counters);
}

std::optional<absl::StatusOr<std::shared_ptr<RandomAccessFile>>> RemoteFileSystem::OpenKnown(
    const ListedFile& file, const Counters& counters) {
  if (!IsAddress(file.path)) return local_.OpenListed(file);
  std::optional<ObjectState> known = KnownState(file);
  if (!known) return std::nullopt;
  return OpenObject(file.path, *std::move(known), counters);
}

std::optional<ObjectState> RemoteFileSystem::KnownState(const ListedFile& file) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = known_.find(file.path);
  if (found == known_.end() || found->second.size != file.size_bytes ||
      !(VersionOf(found->second) == file.version)) {
    return std::nullopt;
  }
  return found->second;
}

std::shared_ptr<void> RemoteFileSystem::Need(const std::vector<ListedFile>& files) {
  return Need(files, nullptr);
}

std::shared_ptr<void> RemoteFileSystem::Need(const std::vector<ListedFile>& files,
                                             const Counters& counters) {
  if (cached_ == nullptr) return nullptr;
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const ListedFile& file : files) {
    // As its requests will call it.
    if (const std::optional<ObjectState> state = KnownState(file))
      names.push_back(CacheName(file.path, *state));
  }
  return cached_->Need(counters, std::move(names));
}

std::optional<uint64_t> RemoteFileSystem::TrustedTag(const ListedFile& file) {
  if (!trusts_etags_ || !IsAddress(file.path)) return std::nullopt;
  const std::optional<ObjectState> state = KnownState(file);
  // Nor is what tells no two states apart for certain.
  if (!state || CacheName(file.path, *state).empty()) return std::nullopt;
  return VersionOf(*state).object;
}

FileSystem& RemoteFileSystem::CountedFor(const std::string& pipeline) {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool is_new = !counted_.contains(pipeline);
  const std::string name = is_new && counted_.size() >= kCountedMax ? "" : pipeline;
  std::unique_ptr<CountedFiles>& files = counted_[name];
  if (files == nullptr) files = std::make_unique<CountedFiles>(*this);
  // Files of a pipeline that had the name before go on to count for that one.
  if (name == pipeline) files->BeginAnew();
  return *files;
}

FetchNumbers RemoteFileSystem::NumbersOfAll() {
  const FetcherStats stats = fetcher_.stats();
  FetchNumbers numbers;
  numbers.under_way = stats.under_way;
  numbers.request_limit = stats.limit;
  numbers.queued = stats.queued;
  numbers.first_byte_ns = stats.first_byte_ns;
  numbers.memory_bytes = pool_bytes();
  numbers.memory_bytes_max = memory_bytes_max_;
  return numbers;
}

std::vector<absl::StatusOr<std::vector<ListedFile>>> RemoteFileSystem::ListEach(
    const std::vector<std::string>& patterns) {
  std::unordered_map<std::string, size_t> numbers;
  std::vector<const std::string*> asked;  // each once
  for (const std::string& pattern : patterns) {
    if (numbers.try_emplace(pattern, asked.size()).second) asked.push_back(&pattern);
  }
  std::vector<absl::StatusOr<std::vector<ListedFile>>> found(
      asked.size(), absl::CancelledError("not listed: another pattern has failed"));
  std::atomic<bool> has_failed{false};
  const auto list = [&](size_t i) {
    if (has_failed) return;
    found[i] = List(*asked[i]);
    if (!found[i].ok()) has_failed = true;
  };
  const auto far = static_cast<size_t>(std::count_if(
      asked.begin(), asked.end(), [](const std::string* one) { return IsAddress(*one); }));
  EachSideBySide(std::clamp(far, size_t{1}, kListsMax), asked.size(), "listing",
                 patterns.empty() ? "" : patterns.back(), list);
  std::vector<absl::StatusOr<std::vector<ListedFile>>> listed;
  listed.reserve(patterns.size());
  for (const std::string& pattern : patterns) listed.push_back(found[numbers[pattern]]);
  return listed;
}

absl::StatusOr<std::vector<ListedFile>> RemoteFileSystem::List(const std::string& pattern) {
  if (!IsAddress(pattern)) return local_.List(pattern);
  const absl::StatusOr<RemoteUrl> url = ParseRemoteUrl(pattern);
  if (!url.ok()) return url.status();
  const PendingCall call("listing", pattern);
  absl::StatusOr<std::vector<FoundObject>> found = client_.List(*url);
  if (!found.ok()) return found.status();
  std::vector<ListedFile> files;
  files.reserve(found->size());
  const bool wants_indices = absl::EndsWith(pattern, kIndexSuffix);
  for (const FoundObject& object : *found) {
    if (!wants_indices && absl::EndsWith(object.url.key, kIndexSuffix)) continue;
    std::string path = object.url.text();
    Remember(path, object.state);
    files.push_back({std::move(path), object.state.size, VersionOf(object.state)});
  }
  if (files.empty())
    return absl::NotFoundError(absl::StrCat("no object matches the glob ", ShownUrl(pattern)));
  const auto less = [](const ListedFile& a, const ListedFile& b) { return a.path < b.path; };
  std::sort(files.begin(), files.end(), less);
  files.erase(
      std::unique(files.begin(), files.end(),
                  [](const ListedFile& a, const ListedFile& b) { return a.path == b.path; }),
      files.end());
  return files;
}

}  // namespace penstock
