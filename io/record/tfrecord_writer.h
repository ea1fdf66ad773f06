// Writes one TFRecord file, in the format that tfrecord_reader.h draws.
//
// Threads:  one thread.
// Owns:     the open file. Until Close() it is called PATH.partial (replaced_file.h), so that no reader takes a
// half-written file for a whole one;
//           a writer that is destroyed before removes it. Or a sink, for which the same holds (io/file/byte_sink.h).
// Limits:   a record of at most kMaxRecordBytes.
// Cost:     a copy into a 1 MiB buffer and one checksum a record.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/file/byte_sink.h"

namespace penstock {

class TfrecordWriter {
 public:
  // An existing file at `path` is replaced at Close().
  static absl::StatusOr<std::unique_ptr<TfrecordWriter>> Create(const std::string& path);
  // The same into a sink; `path` is what messages call it.
  TfrecordWriter(std::string path, std::unique_ptr<ByteSink> sink);

  TfrecordWriter(const TfrecordWriter&) = delete;
  TfrecordWriter& operator=(const TfrecordWriter&) = delete;

  absl::Status Write(std::string_view record);

  // Writes what is left and gives the file its name. Nothing may be written afterwards.
  absl::Status Close();

  const std::string& path() const { return path_; }
  uint64_t num_records() const { return num_records_; }

 private:
  absl::Status Flush();

  const std::string path_;
  const std::unique_ptr<ByteSink> sink_;
  std::string buffer_;
  uint64_t num_records_ = 0;
};

}  // namespace penstock
