#include "io/record/fixed_length_format.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "io/record/record_stream.h"

namespace penstock {
namespace {

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
          return Fail(
              chunk, 0, DamageReason::kPartialRecord,
              absl::DataLossError(absl::StrCat("the file is shorter than its header: ", size, " < ",
                                               sizes_.header_bytes, " bytes")));
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
                      absl::DataLossError(absl::StrCat(
                          "the file does not end in a whole record: ", rest,
                          " bytes are left, expected ", record_bytes, " of a record and ",
                          footer_bytes, " of the footer, or the footer")));
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

absl::Status CheckSize(const char* name, uint64_t value, uint64_t least) {
  if (value >= least && value <= kMaxRecordBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected ", least, " to ", kMaxRecordBytes, ", found ", value));
}

class FixedLength final : public RecordFormat {
 public:
  explicit FixedLength(const FixedLengthSizes& sizes) : sizes_(sizes) {}
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

 private:
  const FixedLengthSizes sizes_;
};

}  // namespace

std::shared_ptr<const RecordFormat> FixedLengthFormat(const FixedLengthSizes& sizes) {
  return std::make_shared<FixedLength>(sizes);
}

}  // namespace penstock
