#include "io/record/json_line_format.h"

#include <algorithm>
#include <utility>

#include "base/json_text.h"
#include "io/record/line_access.h"
#include "io/record/line_stream.h"
#include "io/record/near_lines.h"
#include "io/record/near_records.h"
#include "io/record/record_access.h"
#include "io/record/record_index.h"

namespace penstock {
namespace {

bool IsBlank(absl::string_view text, bool line_ends = false) {
  return std::all_of(text.begin(), text.end(), [line_ends](char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r' || (line_ends && byte == '\n');
  });
}

// A line without the carriage return at its end.
absl::string_view WithoutReturn(absl::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

class JsonLineStream final : public LineStream {
 public:
  JsonLineStream(RecordSource source, bool any_bytes)
      : LineStream(std::move(source)), any_bytes_(any_bytes) {}

 protected:
  void NextRecords(RecordChunk* chunk) override {
    NextLines(chunk, [this, chunk](size_t length, size_t bytes) {
      return TakeLine(chunk, length, bytes);
    });
  }

 private:
  bool TakeLine(RecordChunk* chunk, size_t length, size_t bytes) {
    const uint64_t offset = window().offset() + taken();
    const absl::string_view line =
        WithoutReturn({reinterpret_cast<const char*>(window().data() + taken()), length});
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

  const bool any_bytes_;
  JsonTokens tokens_;
};

class JsonLines final : public RecordFormat, public RecordAccess, public NearRecords {
 public:
  JsonLines(bool any_bytes, bool counts_all) : any_bytes_(any_bytes), counts_all_(counts_all) {}

  std::string ContentKey() const override { return "json_lines"; }
  const RecordAccess* access() const override { return this; }
  std::unique_ptr<RecordStream> NewStream(RecordSource source) const override {
    return std::make_unique<JsonLineStream>(std::move(source), any_bytes_);
  }

  // What is no document depends on it.
  std::string IndexKey() const override {
    return any_bytes_ ? "json_lines_any_bytes" : "json_lines";
  }
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
    line = WithoutReturn(line);
    if (IsBlank(line)) return false;
    *length = line.size();
    return true;
  }

  bool IsAt(RandomAccessFile& file, uint64_t offset, uint64_t length) const override {
    return BeginsLine(file, offset) && RecordAccess::IsAt(file, offset, length);
  }

  uint64_t OrdinalOf(const std::shared_ptr<RandomAccessFile>& file,
                     uint64_t offset) const override {
    return OrdinalByStream(*this, file, offset,
                           counts_all_ ? OnDamage::kFail : OnDamage::kSkipRecord);
  }

  // Whether a line is a document is asked of bytes that stay as they are: of the stream's.
  Cut CutNear(RandomAccessFile& file, uint64_t offset, uint64_t bytes, Take take) const override {
    if (!counts_all_) return {offset, /*is_end=*/false};
    return CutNearLines(
        file, offset, bytes,
        [](absl::string_view line, bool, uint32_t* length) {
          line = WithoutReturn(line);
          *length = static_cast<uint32_t>(line.size());
          return IsBlank(line) ? NearLine::kPassedOver : NearLine::kRecord;
        },
        take);
  }

 private:
  const bool any_bytes_;
  const bool counts_all_;  // lines that are no documents count among the records
  const RecordShape shape_ = {.has_gaps = true};
};

}  // namespace

const std::shared_ptr<const RecordFormat>& JsonLineFormat(bool any_bytes, OnDamage on_damage) {
  using Format = std::shared_ptr<const RecordFormat>;
  // Never destroyed: other threads may still be at work when the process ends.
  static const auto* const formats = new Format[4]{
      std::make_shared<JsonLines>(false, false), std::make_shared<JsonLines>(true, false),
      std::make_shared<JsonLines>(false, true), std::make_shared<JsonLines>(true, true)};
  return formats[(any_bytes ? 1 : 0) + (on_damage == OnDamage::kFail ? 2 : 0)];
}

}  // namespace penstock
