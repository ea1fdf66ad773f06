#include "io/record/json_line_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "io/record/record_access.h"
#include "io/record/record_index.h"
#include "io/record/record_stream.h"

namespace penstock {
namespace {

bool IsBlank(absl::string_view text, bool line_ends = false) {
  return std::all_of(text.begin(), text.end(), [line_ends](char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r' || (line_ends && byte == '\n');
  });
}

class JsonLineStream final : public RecordStream {
 public:
  JsonLineStream(RecordSource source, bool any_bytes)
      : RecordStream(std::move(source)), any_bytes_(any_bytes) {}

 protected:
  void NextRecords(RecordChunk* chunk) override {
    size_t searched = 0;  // behind taken(), bytes known to hold no line end
    while (taken() < ByteWindow::kPieceBytes) {
      const uint8_t* const begin = window().data() + taken();
      const size_t left = window().size() - taken();
      const void* const line_end =
          left == searched ? nullptr : std::memchr(begin + searched, '\n', left - searched);
      if (line_end != nullptr) {
        const size_t length = static_cast<const uint8_t*>(line_end) - begin;
        searched = 0;
        if (length > kMaxRecordBytes && taken() > 0) return;
        if (!TakeLine(chunk, length, length + 1)) return;
        continue;
      }
      // More bytes move the window, which the lines before must not see.
      if (taken() > 0) return;
      searched = left;
      if (searched > kMaxRecordBytes + 1) return DropLongLine(chunk);
      const absl::Status status = window().Ensure(searched + 1);
      if (!status.ok()) return EndOfStream(chunk, window().offset(), status);
      if (window().size() > searched) continue;
      // The last line, without an end of its own.
      if (searched > 0 && !TakeLine(chunk, searched, searched)) return;
      return End(chunk);
    }
  }

 private:
  // The line of the next `length` bytes, of `bytes` with its end. False: the chunk ends with it.
  bool TakeLine(RecordChunk* chunk, size_t length, size_t bytes) {
    const uint64_t offset = window().offset() + taken();
    absl::string_view line(reinterpret_cast<const char*>(window().data() + taken()), length);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.size() > kMaxRecordBytes) {
      DropLongLine(chunk);
      return false;
    }
    if (IsBlank(line)) {
      Take(bytes);
      return true;
    }
    if (verifies_damage()) {
      if (const JsonFault fault = CheckJsonText(line, any_bytes_, tokens_)) {
        if (!skips_damage()) {
          Fail(chunk, offset, DamageReason::kNoDocument,
               absl::DataLossError(DescribeJsonFault(fault)));
          return false;
        }
        chunk->damage.push_back({offset, bytes, DamageReason::kNoDocument});
        Take(bytes);
        return true;
      }
    }
    chunk->records.push_back({offset, static_cast<uint32_t>(line.size()), /*late=*/false});
    Take(bytes);
    return true;
  }

  // The line at the window's beginning, as far as it goes.
  void DropLongLine(RecordChunk* chunk) {
    const uint64_t offset = window().offset();
    if (!skips_damage()) {
      return Fail(chunk, offset, DamageReason::kTooLong,
                  absl::DataLossError(absl::StrCat("line longer than limit: more than ",
                                                   kMaxRecordBytes, " bytes")));
    }
    while (true) {
      const void* const line_end =
          window().size() == 0 ? nullptr : std::memchr(window().data(), '\n', window().size());
      if (line_end != nullptr) {
        window().Drop(static_cast<const uint8_t*>(line_end) - window().data() + 1);
        break;
      }
      window().Drop(window().size());
      const absl::Status status = window().Ensure(1);
      if (!status.ok()) return EndOfStream(chunk, offset, status);
      if (window().size() == 0) break;
    }
    chunk->damage.push_back({offset, window().offset() - offset, DamageReason::kTooLong});
  }

  const bool any_bytes_;
  JsonTokens tokens_;
};

class JsonLines final : public RecordFormat, public RecordAccess {
 public:
  explicit JsonLines(bool any_bytes) : any_bytes_(any_bytes) {}

  std::string ContentKey() const override { return "json_line"; }
  const RecordAccess* access() const override { return this; }
  std::unique_ptr<RecordStream> NewStream(RecordSource source) const override {
    return std::make_unique<JsonLineStream>(std::move(source), any_bytes_);
  }

  // What is no document depends on it.
  std::string IndexKey() const override { return any_bytes_ ? "json_line_any_bytes" : "json_line"; }
  const RecordShape& shape() const override { return shape_; }

  absl::StatusOr<FoundRecords> Scan(const std::shared_ptr<RandomAccessFile>& file,
                                    const IndexOptions& options) const override {
    const bool verifies = options.verify || options.on_damage == OnDamage::kSkipRecord;
    IndexOptions checked = options;
    // The stream looks into lines where it is not to fail at the first one that nobody can decode.
    if (verifies && options.on_damage == OnDamage::kFail) checked.on_damage = OnDamage::kSkipShard;
    absl::StatusOr<FoundRecords> found = ScanByStream(*this, 0, file, checked);
    if (found.ok()) found->verified = verifies;
    return found;
  }

  bool Open(uint8_t* bytes, uint64_t* length, bool at_end) const override {
    absl::string_view line(reinterpret_cast<const char*>(bytes), *length);
    const size_t line_end = line.find('\n');
    if (line_end == absl::string_view::npos) {
      if (!at_end) return false;
    } else {
      // Behind it there may be blank lines, and no others.
      if (!IsBlank(line.substr(line_end), /*line_ends=*/true)) return false;
      line = line.substr(0, line_end);
    }
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.size() > kMaxRecordBytes || IsBlank(line)) return false;
    *length = line.size();
    return true;
  }

  bool IsAt(RandomAccessFile& file, uint64_t offset, uint64_t length) const override {
    uint8_t before = '\n';
    if (offset > 0) {
      const absl::StatusOr<size_t> read = file.ReadAt(offset - 1, {&before, 1});
      if (!read.ok() || *read == 0) return false;
    }
    return before == '\n' && RecordAccess::IsAt(file, offset, length);
  }

  uint64_t OrdinalOf(const std::shared_ptr<RandomAccessFile>& file,
                     uint64_t offset) const override {
    return OrdinalByStream(*this, file, offset);
  }

 private:
  const bool any_bytes_;
  const RecordShape shape_ = {.has_gaps = true};
};

}  // namespace

std::shared_ptr<const RecordFormat> JsonLineFormat(bool any_bytes) {
  return std::make_shared<JsonLines>(any_bytes);
}

}  // namespace penstock
