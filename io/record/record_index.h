// Where each record of a plain file begins, whatever its format: in memory, and in an index that is
// kept (io/record/index_store.h, drawn in index_file.h). What of a file is a record is its format's
// (record_access.h).
//
// An index is never believed: size, version, checksum, order and range of every number are checked
// when it is loaded, and one that fails is built anew. It belongs to a format (one index a data
// file: who reads a file as another one has it built anew), to a data file of the same size
// and of the same first and last 4 KiB, and:
//   of the same version (base/file.h)      it is used;
//   of another version, the index is       the data changed since it was made: it is built anew.
//                                          chmod and links
//   where it was written                   change a version, too;
//   of another version, the index is       both were copied: the data must not be newer than the
//                                          index, 16 records
//   another object                         spread over it must be where the index says, and what it
//                                          says about verified data is not relied on. The same
//                                          where only the holder differs.
// So of copies alone, a change that lies between those records, within the size and under the old
// time, is not seen at once: reading a record that is not where the index says is an error then,
// which says so, as far as the format can tell (a line's end).
//
// Threads:  LoadOrBuildIndex from any thread, also of several processes for one file: one of them
//           writes the index. RecordIndex is constant.
// Owns:     RecordIndex owns its memory: 2.3 bytes a record, or 10.3 of those that lie far apart
//           (record_offsets.h). It is read, not mapped, so that nobody can change or cut what has
//           been checked.
// Cost:     load: 1 ns a record. Build: the format's scan. TFRecords: one sequential walk that
//           reads small records whole and only the headers of long ones; all of the data with
//           `verify` or OnDamage::kSkipRecord. Lines: all of the data.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/memory_block.h"
#include "io/file/damage.h"
#include "io/record/index_store.h"
#include "io/record/record_access.h"
#include "io/record/record_chunk.h"
#include "io/record/record_offsets.h"

namespace penstock {

class RecordIndex {
 public:
  struct Data {
    uint64_t bytes = 0;
    FileVersion version;
    bool verified = false;
    uint64_t records_end = 0;     // of the last record
    uint32_t overhead_bytes = 0;  // of a record: header and footer
  };
  RecordIndex(RecordOffsets offsets, std::vector<Damage> damage, const Data& data)
      : offsets_(std::move(offsets)), damage_(std::move(damage)), data_(data) {}

  // Memory for an index that is read.
  static MemoryBlock Allocate(size_t bytes) { return RecordOffsets::Allocate(bytes); }

  uint64_t size() const { return offsets_.size(); }
  // Of the record's header in the file. REQUIRES: ordinal < size(), here and below.
  uint64_t offset(uint64_t ordinal) const { return offsets_[ordinal]; }
  // Of the record's data, as RecordAccess::Open() takes it; at most kMaxRecordBytes.
  uint64_t length(uint64_t ordinal) const { return extent(ordinal).length; }
  // Where reading goes on behind the record, in front of any damage there.
  uint64_t end(uint64_t ordinal) const {
    return EndOf(offsets_.PairAt(ordinal, data_.records_end));
  }

  // offset() and length() at once.
  struct Extent {
    uint64_t offset;
    uint64_t length;
  };
  Extent extent(uint64_t ordinal) const {
    const RecordOffsets::Pair at = offsets_.PairAt(ordinal, data_.records_end);
    const uint64_t length = EndOf(at) - at.offset - data_.overhead_bytes;
    return {at.offset, length < kMaxRecordBytes ? length : kMaxRecordBytes};
  }

  // What was left out, by offset.
  const std::vector<Damage>& damage() const { return damage_; }
  // Whether all data's checksums held when it was built, but for the damage.
  bool verified() const { return data_.verified; }
  uint64_t data_bytes() const { return data_.bytes; }
  uint64_t records_end() const { return data_.records_end; }
  // Of the data when it was built.
  const FileVersion& data_version() const { return data_.version; }
  const RecordOffsets& offsets() const { return offsets_; }

 private:
  uint64_t EndOf(const RecordOffsets::Pair& at) const {
    return damage_.empty() ? at.next : InFrontOfDamage(at.offset, at.next);
  }
  // The damage behind `offset`, if that comes before `end`.
  uint64_t InFrontOfDamage(uint64_t offset, uint64_t end) const;

  const RecordOffsets offsets_;
  const std::vector<Damage> damage_;
  const Data data_;
};

struct IndexOptions {
  // Check the data of each record too.
  bool verify = false;
  // kSkipRecord verifies, since a record with bad data is one that is left out.
  OnDamage on_damage = OnDamage::kFail;
  // Called now and then with the bytes that are done, of file.size().
  std::function<void(uint64_t bytes)> progress = nullptr;
  // Looked at now and then; where it has become true, building ends with Cancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
  // False: what is not there is NotFound.
  bool build = true;
};

// What happened, for messages; may be null.
struct IndexReport {
  bool built = false;
  std::string path;              // the place of the index that was loaded or written; empty: none
  std::string rejected;          // why the one that was there was not used; empty: there was none
  std::string unwritten;         // why it could not be kept
  bool left_to_another = false;  // who is writing it at this moment
};

// DataLoss with its address where a record is damaged and the policy is kFail.
absl::StatusOr<std::shared_ptr<const RecordIndex>> LoadOrBuildIndex(
    const std::shared_ptr<RandomAccessFile>& file, const RecordAccess& access, IndexStore& store,
    const IndexOptions& options, IndexReport* report = nullptr);

}  // namespace penstock
