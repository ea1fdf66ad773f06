// How the plain bytes of a file are records. A format is one class, in a file of its own
// (text_line_format.cc is a short one), and what an op puts into FileRecordsOptions
// (server/engine/stage/file_records.h): nothing else knows formats by name.
//
// Threads:  constant after construction; shared by all streams of a source.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace penstock {

class RecordAccess;
class RecordStream;
struct RecordSource;

class RecordFormat {
 public:
  virtual ~RecordFormat() = default;

  // Formats of one key make the same records of the same plain bytes, whatever is done about
  // damage.
  virtual std::string ContentKey() const = 0;

  // How the records of a plain file are found in any order, by an index (record_access.h); as
  // long-lived as the format. Null: there is no way, as with compressed files: they are read from
  // the beginning on, and a cursor is reached by reading again.
  virtual const RecordAccess* access() const { return nullptr; }

  // Whether a record's own checksums notice bytes of something else. A plain file of a format
  // without them that begins as gzip or zstd do is refused.
  virtual bool has_checksums() const { return false; }

  // Whether small records, too, are only located where a plain file is in memory, as long ones are;
  // whoever computes one copies and checks its bytes (located_tfrecords.h).
  virtual bool are_located() const { return false; }

  // From a record's offset to its data.
  virtual uint32_t header_bytes() const { return 0; }

  // InvalidArgument for options out of range.
  virtual absl::Status Check() const { return absl::OkStatus(); }

  // The records of one stream of plain bytes.
  virtual std::unique_ptr<RecordStream> NewStream(RecordSource source) const = 0;
};

// TFRecords: a length, its checksum, the data, its checksum.
const std::shared_ptr<const RecordFormat>& TfrecordFormat();

}  // namespace penstock
