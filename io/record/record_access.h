// How the records of a plain file are found in any order: what makes a RecordFormat one that has
// exact length, a global shuffle, a cursor that seeks, and `where` with a record's number. A format
// that has it returns it from RecordFormat::access(); nothing else is told of it.
//
// A file is scanned once. What the scan has found is an index (record_index.h), which is kept in a
// file beside the data (index_file.h draws it) for all formats alike. An entry is an offset; a
// record goes up to the next entry, or to damage. The rest is the format's: what of those bytes is
// data, and whether they are a record at all, since a file may have changed since it was scanned.
//
// Threads:  constant after construction; everything is safe from any thread.
// Cost:     a scan is one sequential pass. Open() is called once for each record that is read in
//           any order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/arena.h"
#include "base/file.h"
#include "io/file/damage.h"
#include "io/record/record_offsets.h"

namespace penstock {

class RecordFormat;
struct IndexOptions;

// What can be said of all records of a format.
struct RecordShape {
  // What stands in the file in front of a record's data and behind it, beside what Open() takes
  // away.
  uint32_t header_bytes = 0;
  uint32_t footer_bytes = 0;
  // A record takes that many bytes in the file, and begins at a multiple of 1 << offset_shift.
  uint32_t least_bytes = 1;
  uint8_t offset_shift = 0;
  // Other bytes may lie behind a record, as many as they like, that belong to none. What is read of
  // them is limited as a record is.
  bool has_gaps = false;
  // They are TFRecord frames (tfrecord_frame.h), which are read in order by chunks
  // (tfrecord_reader.h) and out of maps; the records of all other formats are read in order by
  // their RecordStream, from any record on.
  bool is_framed = false;
};

// What a scan has found.
struct FoundRecords {
  RecordOffsets offsets;
  uint64_t records_end = 0;    // the end of the last one; of no matter where there is none
  std::vector<Damage> damage;  // what was left out, by offset
  bool verified = false;       // all that the format can check of the data held, but for the damage
};

class RecordAccess {
 public:
  virtual ~RecordAccess() = default;

  // Indices of equal keys tell of the same records of the same bytes: mostly
  // RecordFormat::ContentKey().
  virtual std::string IndexKey() const = 0;

  virtual const RecordShape& shape() const = 0;

  // Whether an index is worth a file. False: Scan() computes it.
  virtual bool is_kept() const { return true; }

  // Finds all records, by the same rules as the format's stream does. Damage is an error with its
  // address, or left out and listed, as `options.on_damage` says. Cancelled where options.cancelled
  // has become true.
  virtual absl::StatusOr<FoundRecords> Scan(const std::shared_ptr<RandomAccessFile>& file,
                                            const IndexOptions& options) const = 0;

  // Makes the data of a record of a copy of its bytes, in place: `*length` is what the index says,
  // header and footer not counted, and becomes the data's. At bytes[*length] is the footer. False
  // where these are not the bytes of such a record. `at_end`: the file ends with them.
  virtual bool Open(uint8_t* bytes, uint64_t* length, bool at_end) const = 0;

  // Reads and opens one record. DataLoss, without its address, where there is none.
  virtual absl::StatusOr<absl::Span<const uint8_t>> Read(RandomAccessFile& file, uint64_t offset,
                                                         uint64_t length, Arena& arena) const;

  // Whether a record is where an index says, looked at as shortly as can be.
  virtual bool IsAt(RandomAccessFile& file, uint64_t offset, uint64_t length) const;

  // The ordinal of the record at `offset`, found without an index: for messages.
  virtual uint64_t OrdinalOf(const std::shared_ptr<RandomAccessFile>& file,
                             uint64_t offset) const = 0;
};

// Scan() and OrdinalOf() of a format by its stream: as fast as that, and with the same decisions.
absl::StatusOr<FoundRecords> ScanByStream(const RecordFormat& format, uint8_t offset_shift,
                                          const std::shared_ptr<RandomAccessFile>& file,
                                          const IndexOptions& options);
// `on_damage`: what is left out is not counted.
uint64_t OrdinalByStream(const RecordFormat& format, const std::shared_ptr<RandomAccessFile>& file,
                         uint64_t offset, OnDamage on_damage = OnDamage::kSkipRecord);

}  // namespace penstock
