// Where each record of a TFRecord file begins: in memory, and in an index that is kept (io/record/index_store.h).
//
//   0        8         12       16          24         32        40          44          48
//   ┌────────┬─────────┬────────┬───────────┬──────────┬─────────┬───────────┬───────────┬─────────┐
//   │ magic  │ version │ flags  │ data file │ its      │ its     │ CRC of    │ CRC of    │ number  │
//   │ PENSTIX│ u32     │ u32    │ bytes u64 │ modified │ object  │ its first │ its last  │ of      │
//   │ \n     │         │        │           │ ns i64   │ u64     │ 4 KiB u32 │ 4 KiB u32 │ records │
//   └────────┴─────────┴────────┴───────────┴──────────┴─────────┴───────────┴───────────┴─────────┘
//   56        number of damages u64 │ 64 the data's holder u64, 72 changed ns i64 │ 80 the index's own object u64
//   88        damages: offset u64, length u64, reason u64, each
//   then      offsets of the records' headers, ascending, u64 each │ CRC of all before, u32
//
// Numbers are little-endian, checksums CRC-32C. Flag 1: the data's checksums were verified as well. Version 1 lacks what stands from 64 to 87;
// it is read, as an index that was copied.
//
// An index is never believed: size, version, checksum, order and range of every number are checked
// when it is loaded, and one that fails is built anew. It belongs to a data file of the same size
// and of the same first and last 4 KiB, and:
//   of the same version (base/file.h)      it is used;
//   of another version, the index is       the data changed since it was made: it is built anew. chmod and links
//   where it was written                   change a version, too;
//   of another version, the index is       both were copied: the data must not be newer than the index, 16 headers
//   another object                         spread over it must be where the index says, and what it says about
//                                          verified data is not relied on. The same where only the holder differs.
// So of copies alone, a change that lies between those headers, within the size and under the old time, is not seen at once: reading a
// record that is not where the index says is an error then, which says so.
//
// Threads:  LoadOrBuildIndex from any thread, also of several processes for one file: one of them
//           writes the index. RecordIndex is constant.
// Owns:     RecordIndex owns its memory: 8 bytes a record. It is read, not mapped, so that nobody
//           can change or cut what has been checked.
// Cost:     load: 1 ns a record. Build: one sequential walk that reads small records whole and only
//           the headers of long ones; all of the data with `verify` or OnDamage::kSkipRecord.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/file.h"
#include "base/memory_block.h"
#include "io/file/damage.h"
#include "io/record/index_store.h"

namespace penstock {

class RecordIndex {
 public:
  struct Data {
    uint64_t bytes = 0;
    FileVersion version;
    bool verified = false;
  };
  RecordIndex(absl::Span<const uint64_t> offsets, std::vector<Damage> damage, const Data& data);
  // Without a copy: the offsets lie in `memory`.
  RecordIndex(MemoryBlock memory, absl::Span<const uint64_t> offsets, std::vector<Damage> damage,
              const Data& data);

  // Memory for what holds the offsets.
  static MemoryBlock Allocate(size_t bytes);

  uint64_t size() const { return size_; }
  // Of the record's header in the file. REQUIRES: ordinal < size(), here and below.
  uint64_t offset(uint64_t ordinal) const { return offsets_[ordinal]; }
  // Of the record's data.
  uint64_t length(uint64_t ordinal) const;

  // What was left out, by offset.
  const std::vector<Damage>& damage() const { return damage_; }
  // Whether all data's checksums held when it was built, but for the damage.
  bool verified() const { return data_.verified; }
  uint64_t data_bytes() const { return data_.bytes; }
  // Of the data when it was built.
  const FileVersion& data_version() const { return data_.version; }
  absl::Span<const uint64_t> offsets() const { return {offsets_, size_}; }

 private:
  // Looked at in any order: on huge pages, where a file has enough records for one.
  const MemoryBlock memory_;
  const uint64_t* const offsets_;
  const uint64_t size_;
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
    const std::shared_ptr<RandomAccessFile>& file, IndexStore& store, const IndexOptions& options,
    IndexReport* report = nullptr);

}  // namespace penstock
