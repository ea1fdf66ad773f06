#include "server/engine/read/file_table.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/cache_folder.h"
#include "base/file_error.h"
#include "base/kept_descriptors.h"
#include "base/stop_flag.h"
#include "io/record/named_access.h"
#include "io/record/record_access.h"
#include "io/record/record_chunk.h"
#include "io/record/row_places.h"
#include "server/engine/tasks/errands.h"

namespace penstock {
namespace {

// Whether a record of the length that the index tells begins at `offset`, or the index tells of
// none there.
bool IsWhereIndexed(RandomAccessFile& file, const RecordAccess& access, const RecordIndex& index,
                    uint64_t offset) {
  const uint64_t found = index.offsets().FirstFrom(offset);
  if (found == index.size() || index.offset(found) != offset) return true;
  return access.IsAt(file, offset, index.length(found));
}

}  // namespace

FileEntry EntryOf(const RandomAccessFile& file) {
  FileEntry entry;
  entry.path = file.path();
  entry.size_bytes = file.size();
  entry.version = file.version();
  return entry;
}

// Loads or builds the index of a file, on a thread of the errands.
class FileTable::IndexLoad final : public Errand {
 public:
  IndexLoad(FileTable& table, uint32_t file, OnDamage on_damage, Errands& errands, int stage)
      : Errand(CallKind::kWork, stage),
        table_(table),
        file_(file),
        on_damage_(on_damage),
        errands_(errands) {}

  void Begin(Completion end) override {
    const auto cancelled = std::make_shared<std::atomic<bool>>(false);
    end.OnCancel([cancelled] { cancelled->store(true, std::memory_order_relaxed); });
    errands_.Do([this, cancelled, end = std::move(end)]() mutable {
      end.End(table_.Index(file_, on_damage_, cancelled.get()).status());
    });
  }

 private:
  FileTable& table_;
  const uint32_t file_;
  const OnDamage on_damage_;
  Errands& errands_;
};

FileTable::FileTable(FileSystem& files, const Manifest& manifest, IndexBuilding building,
                     KnownIndices* shared, Notice notice)
    : files_(files),
      manifest_(manifest),
      building_(building),
      shared_(shared),
      notice_(std::move(notice)),
      open_(manifest.size()),
      has_grown_(manifest.size()),
      index_store_(files, CacheFolder("index")),
      indices_(manifest.size()) {}

FileTable::~FileTable() {
  for (size_t i = 0; i < kept_.size(); ++i) LetGoOfDescriptor();
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> FileTable::Open(uint32_t file) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (open_[file]) return open_[file];
  }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> handle = OpenAnew(file);
  if (!handle.ok()) return handle.status();
  std::shared_ptr<RandomAccessFile> oldest;  // closed behind the lock
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_[file]) return *std::move(handle);
  if (kept_.size() >= kMaxOpenFiles || !KeepDescriptor()) {
    if (kept_.empty()) return *std::move(handle);
    oldest = std::move(open_[kept_.front()]);
    kept_.pop_front();
  }
  open_[file] = *handle;
  kept_.push_back(file);
  return *std::move(handle);
}

void FileTable::LookForGrowth(uint32_t file, const RandomAccessFile& opened) {
  if (!notice_) return;
  const uint64_t now = opened.SizeNow();
  if (now <= opened.size()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (has_grown_[file]) return;
    has_grown_[file] = true;
  }
  notice_(absl::StrCat("a file has grown while it was read, from ", opened.size(), " to ", now,
                       " bytes; what was added is left out (", opened.path(), ")"));
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> FileTable::OpenAnew(uint32_t file) {
  const FileEntry& entry = manifest_[file];
  return files_.OpenListed({entry.path, entry.size_bytes, entry.version});
}

std::unique_ptr<MappedFile> FileTable::Map(uint32_t file) const {
  const FileEntry& entry = manifest_[file];
  // By the same way as for a read, which may be confined to some folders.
  const absl::StatusOr<std::shared_ptr<RandomAccessFile>> opened = files_.Open(entry.path);
  if (!opened.ok() || (*opened)->descriptor() < 0) return nullptr;
  absl::StatusOr<std::unique_ptr<MappedFile>> map = MappedFile::Map(**opened);
  if (!map.ok() || (*map)->size() != entry.size_bytes ||
      !(*map)->version().HasContentOf(entry.version))
    return nullptr;
  return *std::move(map);
}

void FileTable::KeepMap(uint32_t file, const RandomAccessFile& opened) {
  // One read is as good as a map.
  if (maps_ == nullptr || opened.size() <= kChunkBytes) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (near_maps_.contains(file) || without_map_.contains(file)) return;
  }
  absl::StatusOr<SharedMaps::Map> map = maps_->Get(opened);
  // There may be room for it some other time: each read of a file without a map comes by here.
  if (absl::IsResourceExhausted(map.status())) return;
  // A map is of use as long as looking at it waits for no disk.
  const PageCacheView view =
      map.ok() ? ViewOfPageCache(opened.descriptor(), opened.size()) : PageCacheView::kNone;
  std::lock_guard<std::mutex> lock(mutex_);
  if (view == PageCacheView::kNone) {
    without_map_.insert(file);
    return;
  }
  // Whoever uses one that another thread has put there goes on with it.
  near_maps_.try_emplace(file, *std::move(map), view);
}

NearMap* FileTable::MapOf(uint32_t file) {
  if (maps_ == nullptr) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto kept = near_maps_.find(file);
  return kept == near_maps_.end() ? nullptr : &kept->second;
}

std::optional<FileTable::IndexOrError> FileTable::AskIndex(uint32_t file, OnDamage on_damage,
                                                           Errands* errands, int stage) {
  if (errands == nullptr) return Index(file, on_damage);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!indices_[file] && shared_ != nullptr) indices_[file] = shared_->Find(file, on_damage);
    if (indices_[file]) {
      const auto load = index_loads_.find(file);
      if (load != index_loads_.end() && load->second->done()) index_loads_.erase(load);
      return indices_[file];
    }
  }
  std::unique_ptr<IndexLoad>& load = index_loads_[file];
  if (load == nullptr) {
    load = std::make_unique<IndexLoad>(*this, file, on_damage, *errands, stage);
    errands->Push(load.get());
  } else if (load->done()) {
    absl::Status status = load->status();
    index_loads_.erase(file);
    if (!status.ok()) return status;
    return Index(file, on_damage);
  }
  ++num_index_waits_;
  return std::nullopt;
}

FileTable::IndexOrError FileTable::Index(uint32_t file, OnDamage on_damage,
                                         const std::atomic<bool>* cancelled) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!indices_[file] && shared_ != nullptr) indices_[file] = shared_->Find(file, on_damage);
    if (indices_[file]) return indices_[file];
  }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> handle = Open(file);
  if (!handle.ok()) return handle.status();
  IndexOptions options;
  options.on_damage = on_damage;
  options.build = building_ == IndexBuilding::kWhenAsked;
  options.cancelled = cancelled;
  absl::StatusOr<std::shared_ptr<const RecordIndex>> index =
      LoadOrBuildIndex(*handle, *manifest_[file].indexed->access(), index_store_, options);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!index.ok()) {
    if (absl::IsNotFound(index.status()) && missing_index_.empty())
      missing_index_ = (*handle)->path();
    return index.status();
  }
  if (shared_ != nullptr) shared_->Add(file, on_damage, *index);
  if (!indices_[file]) indices_[file] = *std::move(index);
  return indices_[file];
}

absl::StatusOr<uint64_t> FileTable::OrdinalOf(uint32_t file, uint64_t offset) {
  if (const std::shared_ptr<const RecordIndex> index = KnownIndex(file); index != nullptr)
    return index->offsets().FirstFrom(offset);
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> handle = Open(file);
  if (!handle.ok()) return handle.status();
  return manifest_[file].indexed->access()->OrdinalOf(*handle, offset);
}

absl::StatusOr<std::vector<uint64_t>> FileTable::OrdinalsOf(uint32_t file,
                                                            absl::Span<const uint64_t> offsets) {
  std::vector<uint64_t> ordinals;
  ordinals.reserve(offsets.size());
  if (offsets.size() > 1 && KnownIndex(file) == nullptr) {
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> handle = Open(file);
    if (!handle.ok()) return handle.status();
    IndexOptions options;
    options.cancelled = StopFlag::OfThisThread();
    const absl::StatusOr<FoundRecords> found =
        manifest_[file].indexed->access()->Scan(*handle, options);
    CheckStop();
    if (found.ok()) {
      for (const uint64_t offset : offsets) ordinals.push_back(found->offsets.FirstFrom(offset));
      return ordinals;
    }
    // Damage, perhaps behind all of them.
  }
  for (const uint64_t offset : offsets) {
    CheckStop();
    absl::StatusOr<uint64_t> ordinal = OrdinalOf(file, offset);
    if (!ordinal.ok()) return ordinal.status();
    ordinals.push_back(*ordinal);
  }
  return ordinals;
}

absl::Status FileTable::WithRecordAddress(const absl::Status& status, uint32_t file,
                                          uint64_t offset) {
  const FileEntry& entry = manifest_[file];
  // An error of reading has an address already.
  if (absl::StrContains(status.message(), entry.path)) return status;
  // What is on another machine is not walked through for a record's ordinal.
  if (entry.indexed != nullptr && IsAddress(entry.path)) {
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), " (", entry.path, ", offset ", offset, ")"));
  }
  if (const auto* const rows = dynamic_cast<const RowPlaces*>(entry.indexed.get())) {
    return WithMessage(status, absl::StrCat(status.message(), " (", entry.path, ", ",
                                            rows->Describe(offset), ")"));
  }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> handle =
      entry.indexed != nullptr ? Open(file) : absl::NotFoundError("no file of records");
  if (handle.ok()) {
    const RecordAccess& access = *entry.indexed->access();
    const std::shared_ptr<const RecordIndex> index = KnownIndex(file);
    if (index != nullptr && absl::IsDataLoss(status) &&
        index->data_version() != (*handle)->VersionNow() &&
        !IsWhereIndexed(**handle, access, *index, offset)) {
      const std::string key = access.IndexKey();
      const std::string remedy =
          AccessNamed(key) != nullptr
              ? absl::StrCat("`penstock index ", entry.path, " --format ", key,
                             "` makes another one, for a pipeline that is created anew")
              : "a pipeline that is created anew makes another one";
      return absl::DataLossError(absl::StrCat(
          "the file changed since its index was made: no sound record is where that says; ", remedy,
          " (", entry.path, ", offset ", offset, ")"));
    }
    const absl::StatusOr<uint64_t> ordinal = OrdinalOf(file, offset);
    if (ordinal.ok()) {
      return WithMessage(status, absl::StrCat(status.message(), " (", entry.path, ", record ",
                                              *ordinal, ", offset ", offset, ")"));
    }
  }
  if (entry.is_one_element)
    return absl::Status(status.code(), absl::StrCat(status.message(), " (", entry.path, ")"));
  return absl::Status(status.code(), absl::StrCat(status.message(), " (", entry.path,
                                                  ", plain offset ", offset, ")"));
}

}  // namespace penstock
