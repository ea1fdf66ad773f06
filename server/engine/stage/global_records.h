// All records of some files in a random order, found by their index: what
// `shuffle { global: true }` makes of a source.
//
// The front deals in positions of the order only; the workers permute them, look the records up and
// copy them out of mapped files, so that no buffer is filled and any position is at hand at once.
//
// Threads:  Open() by the front, before any reference exists; everything else from any thread.
// Owns:     the maps; the indices are shared.
// Limits:   2.3 bytes of memory a record, or 10.3 of those that lie far apart; blocks take none.
//           Files beyond kMaxMappedFiles, and records above kLateRecordBytes, are read instead.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/block_permutation.h"
#include "base/patient_once.h"
#include "base/permutation.h"
#include "io/file/mapped_file.h"
#include "server/engine/order/dataset.h"
#include "server/engine/order/order_op.h"
#include "server/engine/read/column_loader.h"

namespace penstock {

// How far apart records may lie that follow each other.
struct GlobalReach {
  // Records of a block, whose blocks are permuted group by group (base/block_permutation.h); 0: all
  // records among each other.
  uint64_t block_size = 0;
  uint64_t group_blocks = 0;
  // Whether the files are read once, from beginning to end, before any record is.
  bool read_first = false;
};

class GlobalRecords {
 public:
  GlobalRecords(IndexedFiles files, GlobalReach reach, uint64_t key)
      : files_(files), reach_(reach), key_(key) {}

  // Has the indices loaded, or built. False while they are not there yet, and where they cannot be
  // had: then `*status` says why. As FileTable::AskIndex(); once.
  bool Open(FileTable& files, Errands* errands, int stage, absl::Status* status);

  uint64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  // What the files' indices leave out, by file and offset; its count is judged as SkipLimits has
  // it.
  std::vector<std::pair<uint32_t, Damage>> damage() const;
  const SkipLimits& limits() const { return files_.limits; }
  uint32_t first_file() const { return files_.files.first; }
  const FileRange& files() const { return files_.files; }
  const GlobalReach& reach() const { return reach_; }

  // The format of the records.
  const RecordAccess& access() const { return *files_.format->access(); }
  const RecordFormat& format() const { return *files_.format; }
  bool gives_path() const { return files_.gives_path; }

  // Where the index tells of a record.
  struct Place {
    uint64_t in_file;
    uint32_t file;  // among the source's
  };

  // Finding a record takes two steps, so that many entries can be on their way between them.
  // REQUIRES: ordinal < size().
  Place PlaceOf(uint64_t ordinal) const;
  void Prefetch(const Place& place) const {
    __builtin_prefetch(indices_[place.file]->offsets().Entry(place.in_file));
  }
  RecordRef Find(const Place& place) const {
    RecordRef record{};
    Find(place, &record);
    return record;
  }
  // Sets the record's file, offset and length, and nothing else of it.
  void Find(const Place& place, RecordRef* record) const {
    const RecordIndex::Extent extent = indices_[place.file]->extent(place.in_file);
    record->offset = extent.offset;
    record->length = static_cast<uint32_t>(extent.length);
    record->file = files_.files.first + place.file;
  }

  // Which record each place of the order is, for a while: by one thread, in about ascending places.
  class Order {
   public:
    Order(const GlobalRecords& records, uint64_t epoch);
    uint64_t operator()(uint64_t place) { return blocks_ ? (*blocks_)(place) : all_(place); }
    // Null where there are none.
    const BlockPermutation* blocks() const { return blocks_ ? &*blocks_ : nullptr; }

   private:
    Permutation all_;
    std::optional<BlockPermutation> blocks_;
  };

  // Has the files' system told that the records from number `begin` to `end` will be read soon.
  void Announce(uint64_t begin, uint64_t end, FileTable& files) const;

  // Null where the file cannot be mapped.
  const MappedFile* Map(uint32_t file, FileTable& files) const {
    Mapping& mapping = maps_[file - files_.files.first];
    if (!mapping.once.is_done()) [[unlikely]]
      MakeMap(file, files, mapping);
    return mapping.map.get();
  }

 private:
  const IndexedFiles files_;
  const GlobalReach reach_;
  const uint64_t key_;
  std::mutex opening_;  // of the streams of one plan
  // Constant after Open(), which each of them calls before it looks at them.
  std::vector<std::shared_ptr<const RecordIndex>> indices_;
  std::vector<uint64_t> ends_;  // the number of records of the files up to each

  struct Mapping {
    PatientOnce once;
    std::unique_ptr<MappedFile> map;
  };
  void MakeMap(uint32_t file, FileTable& files, Mapping& mapping) const;
  mutable std::vector<Mapping> maps_;
};

// The references: {offset = position, length = low half of the epoch, file = first_file()}.
// `stage_index`: whose clock is charged for what is read first.
OrderFactory GlobalOrder(std::shared_ptr<GlobalRecords> records, const std::string& stage,
                         int stage_index, bool reshuffle);
std::unique_ptr<ColumnLoader> GlobalLoader(std::shared_ptr<const GlobalRecords> records);

}  // namespace penstock
