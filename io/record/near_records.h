// Records of a plain file that lies in memory, cut out of it where they lie: the short way for a
// format whose stream would read all bytes in front of copying them. A RecordAccess may be one,
// too; who reads files asks it by dynamic_cast.
//
// Threads:  constant after construction; safe from any thread.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/file.h"

namespace penstock {

class NearRecords {
 public:
  // `parts`: what a cell of `length` bytes is to begin with, one part behind the other; none for
  // records above kLateRecordBytes. They are the record's bytes, or as much of them as the format
  // needs, in a form that it knows from them. Whoever can write the file may change them meanwhile.
  using Parts = absl::Span<const absl::Span<const uint8_t>>;
  using Take = absl::FunctionRef<void(uint64_t offset, uint32_t length, Parts parts)>;

  struct Cut {
    uint64_t next_offset = 0;  // in front of the next record
    bool is_end = false;       // there is none
  };

  virtual ~NearRecords() = default;

  // Calls `take` with the records from `offset` on, which is in front of one: as many as begin in
  // the next `bytes`. It ends in front of whatever is unusual: damage, what is refused, what is not
  // near (RandomAccessFile::Near). The format's stream goes on there, and knows what to call it.
  // What was taken holds if file.CheckNear() does behind the copy of it.
  virtual Cut CutNear(RandomAccessFile& file, uint64_t offset, uint64_t bytes, Take take) const = 0;
};

}  // namespace penstock
