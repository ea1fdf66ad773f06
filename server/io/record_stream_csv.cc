#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/io/record_stream.h"

namespace penstock {
namespace {

// Looks for the end of a record, in pieces as they arrive.
class RecordEnd {
 public:
  RecordEnd(char field_delim, bool uses_quotes) : delim_(field_delim), quotes_(uses_quotes) {}

  // How many bytes of [begin, end) the record has, where that can be told. `is_last`: no more bytes come. *ends: those of its end.
  std::optional<size_t> Find(const uint8_t* begin, const uint8_t* end, bool is_last, size_t* ends) {
    const size_t size = end - begin;
    for (; searched_ < size; ++searched_) {
      const char byte = static_cast<char>(begin[searched_]);
      if (in_quotes_) {
        if (byte == '"') in_quotes_ = false;
        continue;
      }
      if (byte == '\n' || byte == '\r') {
        const bool has_next = searched_ + 1 < size;
        if (byte == '\r' && !has_next && !is_last) return std::nullopt;
        *ends = byte == '\r' && has_next && begin[searched_ + 1] == '\n' ? 2 : 1;
        return searched_;
      }
      // A mark begins a field, or is the second one of a pair inside of it.
      if (byte == '"' && quotes_ && (at_start_ || was_quoted_)) {
        in_quotes_ = true;
        was_quoted_ = true;
        at_start_ = false;
        continue;
      }
      at_start_ = byte == delim_;
      was_quoted_ = false;
    }
    *ends = 0;
    return is_last ? std::optional(size) : std::nullopt;
  }

 private:
  const char delim_;
  const bool quotes_;
  size_t searched_ = 0;
  bool at_start_ = true;     // of a field
  bool in_quotes_ = false;   // of a field
  bool was_quoted_ = false;  // the field so far
};

}  // namespace

// False when the chunk ends with it.
bool RecordStream::DropHeaderLine(RecordChunk* chunk) {
  while (true) {
    const absl::Status status = window_.Ensure(1);
    if (!status.ok()) {
      EndOfStream(chunk, window_.offset(), status);
      return false;
    }
    if (window_.size() == 0) {
      End(chunk);
      return false;
    }
    const void* const line_end = std::memchr(window_.data(), '\n', window_.size());
    if (line_end != nullptr) {
      window_.Drop(static_cast<const uint8_t*>(line_end) - window_.data() + 1);
      return true;
    }
    window_.Drop(window_.size());
  }
}

void RecordStream::NextCsv(RecordChunk* chunk) {
  if (options_.skips_header && window_.offset() == 0 && !DropHeaderLine(chunk)) return;
  while (taken_ < ByteWindow::kPieceBytes) {
    RecordEnd record(options_.field_delim, options_.uses_quotes);
    std::optional<size_t> length;
    size_t ends = 0;
    for (bool is_last = false; !length;) {
      const uint8_t* const begin = window_.data() + taken_;
      length = record.Find(begin, window_.data() + window_.size(), is_last, &ends);
      if (length) break;
      // More bytes move the window, which the records before must not see.
      if (taken_ > 0) return;
      const size_t have = window_.size();
      if (have > kMaxRecordBytes) {
        return Fail(chunk, window_.offset(), DamageReason::kTooLong,
                    absl::DataLossError(absl::StrCat("record longer than limit: more than ",
                                                     kMaxRecordBytes, " bytes")),
                    false);
      }
      const absl::Status status = window_.Ensure(have + 1);
      if (!status.ok()) return EndOfStream(chunk, window_.offset(), status);
      is_last = window_.size() == have;
    }
    if (*length == 0 && ends == 0) return End(chunk);
    chunk->records.push_back(
        {window_.offset() + taken_, static_cast<uint32_t>(*length), /*late=*/false});
    taken_ += *length + ends;
  }
}

}  // namespace penstock
