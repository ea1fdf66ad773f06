#include "io/record/fixed_length_format.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/record/record_access.h"
#include "io/record/record_index.h"
#include "io/record/record_stream.h"

namespace penstock {
namespace {

// A file of `size` bytes, of which the last `rest` make no whole record.
std::string Describe(const FixedLengthSizes& sizes, uint64_t size, uint64_t rest) {
  if (size < sizes.header_bytes) {
    return absl::StrCat("the file is shorter than its header: ", size, " < ", sizes.header_bytes,
                        " bytes");
  }
  return absl::StrCat("the file does not end in a whole record: ", rest,
                      " bytes are left, expected ", sizes.record_bytes, " of a record and ",
                      sizes.footer_bytes, " of the footer, or the footer");
}

class FixedLengthStream final : public RecordStream {
 public:
  FixedLengthStream(RecordSource source, const FixedLengthSizes& sizes)
      : RecordStream(std::move(source)), sizes_(sizes) {}

 protected:
  void NextRecords(RecordChunk* chunk) override {
    const uint64_t record_bytes = sizes_.record_bytes;
    const uint64_t footer_bytes = sizes_.footer_bytes;
    if (window().offset() < sizes_.header_bytes) {
      const uint64_t missing = sizes_.header_bytes - window().offset();
      const absl::Status status = window().Ensure(missing);
      if (!status.ok()) return EndOfStream(chunk, window().offset(), status);
      if (window().size() < missing) {
        const uint64_t size = window().offset() + window().size();
        // A file of no bytes has no records, and that is all.
        if (size == 0) return End(chunk);
        if (!skips_damage()) {
          return Fail(chunk, 0, DamageReason::kPartialRecord,
                      absl::DataLossError(Describe(sizes_, size, size)));
        }
        chunk->damage.push_back({0, size, DamageReason::kPartialRecord});
        window().Drop(window().size());
        return End(chunk);
      }
      window().Drop(missing);
    }
    // A record is one only when the footer's bytes are behind it.
    while (taken() < ByteWindow::kPieceBytes) {
      const uint64_t need = record_bytes + footer_bytes;
      if (window().size() - taken() >= need) {
        chunk->records.push_back(
            {window().offset() + taken(), static_cast<uint32_t>(record_bytes), false});
        Take(record_bytes);
        continue;
      }
      if (taken() > 0) return;
      const uint64_t offset = window().offset();
      const absl::Status status = window().Ensure(need);
      if (!status.ok()) return EndOfStream(chunk, offset, status);
      if (window().size() >= need) continue;
      const uint64_t rest = window().size();
      if (rest != footer_bytes && offset + rest > 0) {
        if (!skips_damage()) {
          return Fail(chunk, offset, DamageReason::kPartialRecord,
                      absl::DataLossError(Describe(sizes_, offset + rest, rest)));
        }
        chunk->damage.push_back({offset, rest, DamageReason::kPartialRecord});
      }
      window().Drop(rest);
      return End(chunk);
    }
  }

 private:
  const FixedLengthSizes sizes_;
};

// What the stream says of bytes that make no record.
absl::Status PartialRecordError(const RandomAccessFile& file, const FixedLengthSizes& sizes,
                                uint64_t offset, uint64_t rest, uint64_t record) {
  return absl::DataLossError(absl::StrCat(Describe(sizes, file.size(), rest), " (", file.path(),
                                          ", record ", record, ", offset ", offset, ")"));
}

absl::Status CheckSize(const char* name, uint64_t value, uint64_t least) {
  if (value >= least && value <= kMaxRecordBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected ", least, " to ", kMaxRecordBytes, ", found ", value));
}

class FixedLength final : public RecordFormat, public RecordAccess {
 public:
  explicit FixedLength(const FixedLengthSizes& sizes)
      : sizes_(sizes),
        shape_{.least_bytes = static_cast<uint32_t>(
                   std::clamp(sizes.record_bytes, uint64_t{1}, kMaxRecordBytes))} {}
  const RecordAccess* access() const override { return this; }
  std::string ContentKey() const override {
    return absl::StrCat("fixed_length ", sizes_.record_bytes, " ", sizes_.header_bytes, " ",
                        sizes_.footer_bytes);
  }
  absl::Status Check() const override {
    absl::Status status = CheckSize("record_bytes", sizes_.record_bytes, 1);
    if (status.ok()) status = CheckSize("header_bytes", sizes_.header_bytes, 0);
    if (status.ok()) status = CheckSize("footer_bytes", sizes_.footer_bytes, 0);
    return status;
  }
  std::unique_ptr<RecordStream> NewStream(RecordSource source) const override {
    return std::make_unique<FixedLengthStream>(std::move(source), sizes_);
  }

  std::string IndexKey() const override { return ContentKey(); }
  const RecordShape& shape() const override { return shape_; }
  bool is_kept() const override { return false; }

  absl::StatusOr<FoundRecords> Scan(const std::shared_ptr<RandomAccessFile>& file,
                                    const IndexOptions& options) const override {
    if (absl::Status status = Check(); !status.ok()) return status;
    if (absl::Status status = CheckIsPlain(*file); !status.ok()) return status;
    const uint64_t size = file->size();
    const uint64_t around = sizes_.header_bytes + sizes_.footer_bytes;
    const uint64_t records = size < around ? 0 : (size - around) / sizes_.record_bytes;
    FoundRecords found;
    found.verified = true;
    found.offsets = RecordOffsets::Even(sizes_.header_bytes, sizes_.record_bytes, records);
    found.records_end = sizes_.header_bytes + records * sizes_.record_bytes;
    // The rule of the stream: a rest that is neither the footer nor nothing at all.
    const uint64_t rest_begin = size < sizes_.header_bytes ? 0 : found.records_end;
    const uint64_t rest = size - rest_begin;
    const bool is_whole = size == 0 || (size >= sizes_.header_bytes && rest == sizes_.footer_bytes);
    if (is_whole) return found;
    if (options.on_damage == OnDamage::kSkipRecord) {
      found.damage.push_back({rest_begin, rest, DamageReason::kPartialRecord});
      return found;
    }
    return PartialRecordError(*file, sizes_, rest_begin, rest, records);
  }

  bool Open(uint8_t*, uint64_t* length, bool) const override {
    return *length == sizes_.record_bytes;
  }
  bool IsAt(RandomAccessFile&, uint64_t, uint64_t length) const override {
    return length == sizes_.record_bytes;
  }
  uint64_t OrdinalOf(const std::shared_ptr<RandomAccessFile>&, uint64_t offset) const override {
    return (offset - std::min(offset, sizes_.header_bytes)) / sizes_.record_bytes;
  }

 private:
  const FixedLengthSizes sizes_;
  const RecordShape shape_;
};

}  // namespace

std::shared_ptr<const RecordFormat> FixedLengthFormat(const FixedLengthSizes& sizes) {
  return std::make_shared<FixedLength>(sizes);
}

}  // namespace penstock
