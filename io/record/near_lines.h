// Cuts lines out of bytes that lie in memory: what LineStream finds, without reading them first.
//
// Threads:  any; no state.
// Cost:     each byte is looked at once (memchr), and what a format looks at.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "io/record/near_records.h"

namespace penstock {

// What a line is to a format.
enum class NearLine : uint8_t {
  kRecord,
  kPassedOver,
  kUnusual,  // the format's stream is to look at it
};

// Of a line without its "\n", whose bytes may change. `has_end`: it has one. Of a record `*length`,
// which was the line's, becomes the data's, which begin where the line does.
using JudgeLine =
    absl::FunctionRef<NearLine(absl::string_view line, bool has_end, uint32_t* length)>;

// As NearRecords::CutNear. Of a record above kLateRecordBytes the length that is told is that of
// the whole line with its end, as an index tells it: RecordAccess::Open() makes its data of that.
NearRecords::Cut CutNearLines(RandomAccessFile& file, uint64_t offset, uint64_t bytes,
                              JudgeLine judge, NearRecords::Take take);

}  // namespace penstock
