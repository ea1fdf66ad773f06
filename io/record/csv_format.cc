#include "io/record/csv_format.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/record/record_access.h"
#include "io/record/record_stream.h"

namespace penstock {
namespace {

// Looks for the end of a record, in pieces as they arrive.
class RecordEnd {
 public:
  RecordEnd(char field_delim, bool uses_quotes) : delim_(field_delim), quotes_(uses_quotes) {}

  // How many bytes of [begin, end) the record has, where that can be told. `is_last`: no more bytes
  // come. *ends: those of its end.
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

  // Of a record that was found: whether its last field ends without the quotation mark that closes
  // it.
  bool in_quotes() const { return in_quotes_; }

 private:
  const char delim_;
  const bool quotes_;
  size_t searched_ = 0;
  bool at_start_ = true;     // of a field
  bool in_quotes_ = false;   // of a field
  bool was_quoted_ = false;  // the field so far
};

class CsvStream final : public RecordStream {
 public:
  CsvStream(RecordSource source, const CsvRecordOptions& options)
      : RecordStream(std::move(source)), options_(options) {}

 protected:
  void NextRecords(RecordChunk* chunk) override {
    if (options_.skips_header && window().offset() == 0 && !DropHeader(chunk)) return;
    Found end;
    while (taken() < ByteWindow::kPieceBytes && Find(chunk, &end)) {
      chunk->records.push_back(
          {window().offset() + taken(), static_cast<uint32_t>(end.length), /*late=*/false});
      Take(end.length + end.ends);
    }
  }

 private:
  struct Found {
    size_t length = 0;
    size_t ends = 0;  // bytes of what ends the record
    bool in_quotes = false;
  };

  // Finds the record behind those of the chunk. False when the chunk ends there.
  bool Find(RecordChunk* chunk, Found* end) {
    RecordEnd record(options_.field_delim, options_.uses_quotes);
    std::optional<size_t> length;
    for (bool is_last = false; !length;) {
      const uint8_t* const begin = window().data() + taken();
      length = record.Find(begin, window().data() + window().size(), is_last, &end->ends);
      if (length) break;
      // More bytes move the window, which the records before must not see.
      if (taken() > 0) return false;
      const size_t have = window().size();
      if (have > kMaxRecordBytes) {
        FailTooLong(chunk);
        return false;
      }
      const absl::Status status = window().Ensure(have + 1);
      if (!status.ok()) {
        EndOfStream(chunk, window().offset(), status);
        return false;
      }
      is_last = window().size() == have;
    }
    end->length = *length;
    end->in_quotes = record.in_quotes();
    if (end->length + end->ends > kMaxRecordBytes) {
      FailTooLong(chunk);
      return false;
    }
    if (end->length + end->ends > 0) return true;
    End(chunk);
    return false;
  }

  // The record behind those of the chunk, its end counted.
  void FailTooLong(RecordChunk* chunk) {
    Fail(chunk, window().offset() + taken(), DamageReason::kTooLong,
         absl::DataLossError(
             absl::StrCat("record longer than limit: more than ", kMaxRecordBytes, " bytes")));
  }

  // The first record, whatever its fields are. False when the chunk ends with it.
  bool DropHeader(RecordChunk* chunk) {
    // A byte order mark is no part of the first name, whose quotation mark would count for nothing
    // behind it.
    constexpr char kMark[] = "\xef\xbb\xbf";
    constexpr size_t kMarkBytes = 3;
    if (const absl::Status status = window().Ensure(kMarkBytes); !status.ok()) {
      EndOfStream(chunk, window().offset(), status);
      return false;
    }
    if (window().size() >= kMarkBytes && std::memcmp(window().data(), kMark, kMarkBytes) == 0)
      window().Drop(kMarkBytes);
    Found header;
    if (!Find(chunk, &header)) return false;
    if (header.in_quotes) {
      // All of the file would be the header.
      Fail(chunk, 0, DamageReason::kPartialRecord,
           absl::DataLossError("a quotation mark of the header is not closed"));
      return false;
    }
    window().Drop(header.length + header.ends);
    return true;
  }

  const CsvRecordOptions options_;
};

class CsvRecords final : public RecordFormat, public RecordAccess {
 public:
  explicit CsvRecords(const CsvRecordOptions& options) : options_(options) {}
  const RecordAccess* access() const override { return this; }
  std::string ContentKey() const override {
    return absl::StrCat("csv ", static_cast<int>(options_.field_delim), " ", options_.uses_quotes,
                        " ", options_.skips_header);
  }
  std::unique_ptr<RecordStream> NewStream(RecordSource source) const override {
    return std::make_unique<CsvStream>(std::move(source), options_);
  }

  std::string IndexKey() const override { return ContentKey(); }
  const RecordShape& shape() const override { return shape_; }
  absl::StatusOr<FoundRecords> Scan(const std::shared_ptr<RandomAccessFile>& file,
                                    const IndexOptions& options) const override {
    return ScanByStream(*this, shape_.offset_shift, file, options);
  }
  bool Open(uint8_t* bytes, uint64_t* length, bool at_end) const override {
    const uint64_t size = *length;
    if (size == 0) return false;
    const bool ends = bytes[size - 1] == '\n' || bytes[size - 1] == '\r';
    if (!ends) return at_end;
    *length -= size > 1 && bytes[size - 1] == '\n' && bytes[size - 2] == '\r' ? 2 : 1;
    return true;
  }
  uint64_t OrdinalOf(const std::shared_ptr<RandomAccessFile>& file,
                     uint64_t offset) const override {
    return OrdinalByStream(*this, file, offset);
  }

 private:
  const CsvRecordOptions options_;
  const RecordShape shape_ = {};
};

}  // namespace

std::shared_ptr<const RecordFormat> CsvRecordFormat(const CsvRecordOptions& options) {
  return std::make_shared<CsvRecords>(options);
}

}  // namespace penstock
