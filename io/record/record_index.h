// Where each record of a TFRecord file begins: in memory, and beside the file as NAME.penstock-index.
//
//   0        8         12       16          24         32        40          44          48
//   ┌────────┬─────────┬────────┬───────────┬──────────┬─────────┬───────────┬───────────┬─────────┐
//   │ magic  │ version │ flags  │ data file │ its      │ its     │ CRC of    │ CRC of    │ number  │
//   │ PENSTIX│ u32     │ u32    │ bytes u64 │ mtime ns │ inode   │ its first │ its last  │ of      │
//   │ \n     │         │        │           │ i64      │ u64     │ 4 KiB u32 │ 4 KiB u32 │ records │
//   └────────┴─────────┴────────┴───────────┴──────────┴─────────┴───────────┴───────────┴─────────┘
//   56        number of damages u64 │ 64  damages: offset u64, length u64, reason u64, each
//   then      offsets of the records' headers, ascending, u64 each │ CRC of all before, u32
//
// Numbers are little-endian, checksums CRC-32C. Flag 1: the data's checksums were verified as well.
//
// An index is never believed: size, version, checksum, order and range of every number are checked
// when it is loaded, and one that fails is built anew. It belongs to a data file of the same size
// and of the same first and last 4 KiB. Where time or inode differ, as they do when data and index
// were copied together, the data must not be newer than the index's file, 16 headers spread over it
// must be where the index says, and what it says about verified data is not relied on. A file that
// was changed in its middle alone, within its size, between those headers and under an old time, is
// noticed only where the checksums of records that changed are verified.
//
// Threads:  LoadOrBuildIndex from any thread, also of several processes for one file: each writes
//           its own temporary file and renames it. RecordIndex is constant.
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

namespace penstock {

class RecordIndex {
 public:
  RecordIndex(absl::Span<const uint64_t> offsets, std::vector<Damage> damage, uint64_t data_bytes,
              bool verified);
  // Without a copy: the offsets lie in `memory`.
  RecordIndex(MemoryBlock memory, absl::Span<const uint64_t> offsets, std::vector<Damage> damage,
              uint64_t data_bytes, bool verified);

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
  bool verified() const { return verified_; }
  uint64_t data_bytes() const { return data_bytes_; }
  absl::Span<const uint64_t> offsets() const { return {offsets_, size_}; }

 private:
  // Looked at in any order: on huge pages, where a file has enough records for one.
  const MemoryBlock memory_;
  const uint64_t* const offsets_;
  const uint64_t size_;
  const std::vector<Damage> damage_;
  const uint64_t data_bytes_;
  const bool verified_;
};

struct IndexOptions {
  // Where the index goes when the data's folder cannot be written, under a name made of the data
  // file's absolute path. Made if absent. Empty: nowhere.
  std::string cache_dir = {};
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
  // Whether to keep what was built. Where it cannot be kept, the index is as good without.
  bool write = true;
};

// What happened, for messages; may be null.
struct IndexReport {
  bool built = false;
  std::string path;       // of the index file that was loaded or written; empty: none
  std::string rejected;   // why the one that was there was not used; empty: there was none
  std::string unwritten;  // why it could not be kept
};

// DataLoss with its address where a record is damaged and the policy is kFail.
absl::StatusOr<std::shared_ptr<const RecordIndex>> LoadOrBuildIndex(
    const std::shared_ptr<RandomAccessFile>& file, const IndexOptions& options,
    IndexReport* report = nullptr);

// Where the index of a data file is looked for and put: beside it, and in the cache directory.
std::string IndexPathBeside(const std::string& data_path);
std::string IndexPathInCache(const std::string& cache_dir, const std::string& data_path);

}  // namespace penstock
