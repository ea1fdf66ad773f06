// A stream of lines, for formats that have a record a line: finds where each ends, and drops those
// that are too long.
//
// Threads:  one.
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "io/record/record_stream.h"

namespace penstock {

// What is said of a line of more than kMaxRecordBytes, its end counted.
std::string LongLineMessage();

class LineStream : public RecordStream {
 protected:
  explicit LineStream(RecordSource source) : RecordStream(std::move(source)) {}

  // NextRecords(): calls `take_line(length, bytes)` for each line, which begins at taken(): of
  // `length` bytes, of `bytes` with its "\n". It appends the line to the chunk, where it is to be a
  // record, and Take()s its bytes. False: it has failed.
  template <typename TakeLine>
  void NextLines(RecordChunk* chunk, const TakeLine& take_line) {
    size_t searched = 0;  // behind taken(), bytes known to hold no line end
    while (taken() < ByteWindow::kPieceBytes) {
      const uint8_t* const begin = window().data() + taken();
      const size_t left = window().size() - taken();
      const void* const line_end =
          left == searched ? nullptr : std::memchr(begin + searched, '\n', left - searched);
      if (line_end != nullptr) {
        const size_t length = static_cast<const uint8_t*>(line_end) - begin;
        searched = 0;
        if (length >= kMaxRecordBytes) {
          if (taken() == 0) DropLongLine(chunk);
          return;
        }
        if (!take_line(length, length + 1)) return;
        continue;
      }
      // More bytes move the window, which the lines before must not see.
      if (taken() > 0) return;
      searched = left;
      if (searched > kMaxRecordBytes) return DropLongLine(chunk);
      const absl::Status status = window().Ensure(searched + 1);
      if (!status.ok()) return EndOfStream(chunk, window().offset(), status);
      if (window().size() > searched) continue;
      // The last line, without an end of its own.
      if (searched > 0 && !take_line(searched, searched)) return;
      return End(chunk);
    }
  }

 private:
  // The line at the window's beginning, as far as it goes.
  void DropLongLine(RecordChunk* chunk);
};

}  // namespace penstock
