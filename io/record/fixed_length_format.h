// Records of one length, between a header and a footer of the file.
//
// Threads:  as RecordFormat: constant, and safe from any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "io/record/record_format.h"

namespace penstock {

struct FixedLengthSizes {
  uint64_t record_bytes = 0;  // 1 to kMaxRecordBytes
  uint64_t header_bytes = 0;  // at most kMaxRecordBytes, as the footer
  uint64_t footer_bytes = 0;
};

std::shared_ptr<const RecordFormat> FixedLengthFormat(const FixedLengthSizes& sizes);

}  // namespace penstock
