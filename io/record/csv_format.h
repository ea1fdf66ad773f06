// Records of comma-separated values: lines, whose ends may be "\n", "\r\n" or "\r" and, where
// fields may stand in quotation marks, are no ends inside of them. A record is its bytes as they
// stand, without its end.
//
// Threads:  as RecordFormat: constant, and safe from any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "io/record/record_format.h"

namespace penstock {

struct CsvRecordOptions {
  char field_delim = ',';
  bool uses_quotes = true;
  bool skips_header = false;  // the first record
};

std::shared_ptr<const RecordFormat> CsvRecordFormat(const CsvRecordOptions& options);

}  // namespace penstock
