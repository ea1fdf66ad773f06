// The way from references to columns: what a source does for the back of the pipeline.
//
// Threads: constant after construction; Load() is safe from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "base/row_identity.h"
#include "base/signature.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/record.h"

namespace penstock {

// The references of a block of rows: row r's is refs[r * stride].
struct RowReferences {
  const RecordRef* refs = nullptr;
  uint32_t rows = 0;
  uint32_t stride = 1;

  const RecordRef& operator[](uint32_t row) const { return refs[size_t{row} * stride]; }
};

class ColumnLoader {
 public:
  virtual ~ColumnLoader() = default;

  // The features of one element.
  virtual const Signature& output() const = 0;
  // Whether they are a dict rather than one lone tensor.
  virtual bool is_dict() const { return false; }

  // Whether its references are positions that Resolve() turns into records.
  virtual bool resolves() const { return false; }
  // Turns those of its references that are positions into records, in place, so that their bytes
  // can be fetched ahead of Load(), which takes both. The references are those of one row after the
  // other, `stride` apart; others than its own may be among them.
  virtual void Resolve(RecordRef*, uint32_t /*rows*/, uint32_t /*stride*/, FileTable&,
                       Arena&) const {}

  // As WorkOp::Run.
  virtual RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                         Arena& arena) const = 0;

  // Whether a DataLoss of Load() is of a row's values, which an ignore_errors behind it leaves out.
  // Else it is of the bytes, which are there for no row: the damage policy decides.
  virtual bool fails_by_values() const { return false; }

  // The path of the element that a reference stands for (base/row_identity.h).
  virtual uint64_t Path(const RecordRef& reference) const {
    return PathAt(Locate(reference), reference.epoch);
  }

  // What of the spec decides how the bytes of a file become an element, so that sources with equal
  // keys load equal elements of the same file and offset; "" where that cannot be told, or more
  // than those decides.
  virtual std::string ContentKey() const { return ""; }

  // Where the record of a reference lies: its offset and file.
  virtual RecordRef Locate(const RecordRef& reference) const { return reference; }
  // Whether that is where a batch begins which the element is, or was a row of.
  virtual bool locates_batch() const { return false; }

 protected:
  static uint64_t PathAt(const RecordRef& place, uint64_t epoch) {
    return MixPath(MixPath(place.file, place.offset), epoch);
  }
};

}  // namespace penstock
