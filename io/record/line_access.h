// Lines of text in any order: RecordAccess of what text_line_format.h reads, for all formats that
// have a record a line.
//
// Threads:  any.
// Cost:     a scan looks at each byte once (memchr), 2.3 bytes of index a line of up to 2,300 bytes
//           on the mean.
#pragma once

#include "io/record/record_access.h"

namespace penstock {

const RecordAccess& LineAccess();

// Whether a line begins at `offset`: there is nothing before it, or a line's end.
bool BeginsLine(RandomAccessFile& file, uint64_t offset);

}  // namespace penstock
