// The files of a plan, by index: the manifest that was listed at plan time, and handles opened
// when first needed.
//
// Threads:  safe from any thread, but for what is the front's.
// Limits:   at most kMaxOpenFiles handles are kept, and fewer where the process may have few
//           (base/kept_descriptors.h): the one that was opened first makes place. A file whose
//           handle is not kept is opened anew when it is asked for again.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/file.h"
#include "io/file/damage.h"
#include "io/file/mapped_file.h"
#include "io/file/shared_maps.h"
#include "io/record/record_format.h"
#include "io/record/record_index.h"
#include "server/engine/read/known_indices.h"
#include "server/engine/read/near_map.h"

namespace penstock {

struct FileEntry {
  std::string path;  // empty: no file, but a source that needs none
  uint64_t size_bytes = 0;
  // Where it is a plain file of records that an index finds (RecordFormat::access()): their format.
  std::shared_ptr<const RecordFormat> indexed = nullptr;
  FileVersion version;          // when it was listed
  bool is_one_element = false;  // and needs no offset to be found
  bool is_stream = false;       // whatever is wanted of it, it is read from its beginning on
};

class Errands;

// The entry of an open file.
FileEntry EntryOf(const RandomAccessFile& file);

// Constant after the plan is made.
using Manifest = std::vector<FileEntry>;

// The files of one source: consecutive ones of the manifest.
struct FileRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

// What is done where a file has no index yet.
enum class IndexBuilding : uint8_t { kWhenAsked, kNever };

class FileTable {
 public:
  static constexpr size_t kMaxOpenFiles = 256;

  using Notice = std::function<void(const std::string&)>;

  // Indices are looked for in `shared` first, which must outlive it. `notice` is told what is no
  // error; it may be empty.
  FileTable(FileSystem& files, const Manifest& manifest,
            IndexBuilding building = IndexBuilding::kWhenAsked, KnownIndices* shared = nullptr,
            Notice notice = {});
  ~FileTable();

  // FailedPrecondition when the file is no longer the one that the manifest lists.
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(uint32_t file);

  // The same for who reads the file once and whole: it is opened, and compared with the manifest,
  // each time.
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> OpenAnew(uint32_t file);

  // A map of the file; null where there is none to have, or another one has come in its place: then
  // it is read.
  std::unique_ptr<MappedFile> Map(uint32_t file) const;

  // Before the files are used: maps of them are kept, as many as `maps` has room for, which may be
  // null. The first ones that are read are those that are mapped; there is nothing to win by
  // mapping others in their place, as all are read equally often.
  void KeepMaps(std::shared_ptr<SharedMaps> maps) { maps_ = std::move(maps); }

  // From now on there is a map of the file, which Open() gave as `opened`, as long as this table
  // is; unless there is no room for it, or nobody tells what of it is in memory.
  void KeepMap(uint32_t file, const RandomAccessFile& opened);
  // That map; null: the file is to be read.
  NearMap* MapOf(uint32_t file);

  // Where the records of a file lie; loaded or built when first asked for, which may take as long
  // as reading it. REQUIRES: FileEntry::indexed. Cancelled soon after `cancelled`, which may be
  // null, has become true.
  using IndexOrError = absl::StatusOr<std::shared_ptr<const RecordIndex>>;
  IndexOrError Index(uint32_t file, OnDamage on_damage,
                     const std::atomic<bool>* cancelled = nullptr);
  // The same without waiting, for the front: absent while others, who are asked to, have not come
  // by it yet. An error is told once: who asks again has it tried again. Without `errands` it
  // waits. `stage`: whose time it takes.
  std::optional<IndexOrError> AskIndex(uint32_t file, OnDamage on_damage, Errands* errands,
                                       int stage);
  // How often that was absent. The front's.
  uint64_t num_index_waits() const { return num_index_waits_; }
  // The number of the record at `offset`: by the file's index where that is at hand, else looked
  // for. REQUIRES: FileEntry::indexed.
  absl::StatusOr<uint64_t> OrdinalOf(uint32_t file, uint64_t offset);
  // The same of several records: the file is gone through once. Throws Stopped soon after this
  // thread is told to stop.
  absl::StatusOr<std::vector<uint64_t>> OrdinalsOf(uint32_t file,
                                                   absl::Span<const uint64_t> offsets);

  // For who has come to the end of a file: what it has grown by since it was opened is not read,
  // and is told once.
  void LookForGrowth(uint32_t file, const RandomAccessFile& opened);

  // `status` with the address of a record of the file appended. Where the file is no longer of the
  // version that its index was made of, it says so instead of speaking of damage.
  absl::Status WithRecordAddress(const absl::Status& status, uint32_t file, uint64_t offset);

  // The first file that was asked for an index and had none; "" when there was none such.
  std::string MissingIndex() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return missing_index_;
  }

  const Manifest& manifest() const { return manifest_; }

  // Of records and files that are read when they are worked on; what the read queue reads is
  // counted by who runs it.
  void CountRead(uint64_t bytes) { bytes_read_.fetch_add(bytes, std::memory_order_relaxed); }
  uint64_t bytes_read() const { return bytes_read_.load(std::memory_order_relaxed); }

  // For who is told what is no error.
  void Tell(const std::string& notice) const {
    if (notice_) notice_(notice);
  }

  // Bytes that the kernel is asked for beyond what a source's files are read to; from any thread,
  // at any time. `stage`: of the source.
  static constexpr int64_t kDefaultReadAhead = 512 << 10;
  void SetReadAhead(size_t stage, int64_t bytes) {
    if (read_ahead_.size() <= stage) return;
    read_ahead_[stage].store(bytes, std::memory_order_relaxed);
  }
  int64_t ReadAhead(size_t stage) const {
    if (read_ahead_.size() <= stage) return kDefaultReadAhead;
    return read_ahead_[stage].load(std::memory_order_relaxed);
  }
  // Before the files are used: how many stages there are.
  void SetStages(size_t stages) {
    read_ahead_ = std::vector<std::atomic<int64_t>>(stages);
    for (std::atomic<int64_t>& bytes : read_ahead_) bytes.store(kDefaultReadAhead);
  }

 private:
  class IndexLoad;

  // Null: it has not been asked for.
  std::shared_ptr<const RecordIndex> KnownIndex(uint32_t file) {
    std::lock_guard<std::mutex> lock(mutex_);
    return indices_[file];
  }

  FileSystem& files_;
  const Manifest& manifest_;
  const IndexBuilding building_;
  KnownIndices* const shared_;  // may be null
  const Notice notice_;
  std::vector<std::atomic<int64_t>> read_ahead_;  // one a stage
  std::atomic<uint64_t> bytes_read_{0};
  mutable std::mutex mutex_;
  std::string missing_index_;                            // under mutex_
  std::vector<std::shared_ptr<RandomAccessFile>> open_;  // under mutex_
  std::deque<uint32_t> kept_;    // of those, in the order in which they were opened; under mutex_
  std::vector<bool> has_grown_;  // under mutex_: of which that was told
  std::shared_ptr<SharedMaps> maps_;                 // constant once files are used; may be null
  std::unordered_map<uint32_t, NearMap> near_maps_;  // under mutex_
  std::unordered_set<uint32_t> without_map_;  // under mutex_: of which there is none to be had
  FolderIndexStore index_store_;
  std::vector<std::shared_ptr<const RecordIndex>>
      indices_;  // under mutex_; null: not asked for yet

  // The front's.
  std::unordered_map<uint32_t, std::unique_ptr<IndexLoad>> index_loads_;  // by file
  uint64_t num_index_waits_ = 0;
};

}  // namespace penstock
