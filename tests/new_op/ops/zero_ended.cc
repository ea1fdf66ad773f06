#include <cstring>
#include <memory>
#include <utility>

#include "io/record/record_access.h"
#include "io/record/record_stream.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/file_records.h"

namespace penstock {
namespace {

class ZeroEndedStream final : public RecordStream {
 public:
  explicit ZeroEndedStream(RecordSource source) : RecordStream(std::move(source)) {}

 protected:
  void NextRecords(RecordChunk* chunk) override {
    while (taken() < ByteWindow::kPieceBytes) {
      const uint8_t* const begin = window().data() + taken();
      const size_t left = window().size() - taken();
      const void* const zero = left == 0 ? nullptr : std::memchr(begin, 0, left);
      if (zero != nullptr) {
        const auto length = static_cast<uint32_t>(static_cast<const uint8_t*>(zero) - begin);
        chunk->records.push_back({window().offset() + taken(), length, /*late=*/false});
        Take(length + 1);
        continue;
      }
      if (taken() > 0) return;
      const absl::Status status = window().Ensure(left + 1);
      if (!status.ok()) return EndOfStream(chunk, window().offset(), status);
      if (window().size() > left) continue;
      if (left == 0) return End(chunk);
      return Fail(chunk, window().offset(), DamageReason::kPartialRecord,
                  absl::DataLossError("the file does not end in a zero byte"));
    }
  }
};

class ZeroEndedFormat final : public RecordFormat, public RecordAccess {
 public:
  std::string ContentKey() const override { return "zero_ended"; }
  const RecordAccess* access() const override { return this; }
  std::unique_ptr<RecordStream> NewStream(RecordSource source) const override {
    return std::make_unique<ZeroEndedStream>(std::move(source));
  }

  std::string IndexKey() const override { return ContentKey(); }
  const RecordShape& shape() const override { return shape_; }
  absl::StatusOr<FoundRecords> Scan(const std::shared_ptr<RandomAccessFile>& file,
                                    const IndexOptions& options) const override {
    return ScanByStream(*this, shape_.offset_shift, file, options);
  }
  bool Open(uint8_t* bytes, uint64_t* length, bool /*at_end*/) const override {
    if (*length == 0 || bytes[*length - 1] != 0) return false;
    --*length;
    return true;
  }
  uint64_t OrdinalOf(const std::shared_ptr<RandomAccessFile>& file,
                     uint64_t offset) const override {
    return OrdinalByStream(*this, file, offset);
  }

 private:
  const RecordShape shape_ = {};
};

const OpRegistration<v1::ZeroEnded> kZeroEnded(
    "zero_ended", {.place = OpPlace::kSource, .files = v1::ZeroEnded::kFilesFieldNumber},
    [](const v1::ZeroEnded& options, PlanBuilder& plan) -> absl::Status {
      FileRecordsOptions records;
      records.format.stream.format = std::make_shared<ZeroEndedFormat>();
      absl::StatusOr<Compression> compression = CompressionFromName(options.compression());
      if (!compression.ok()) return compression.status();
      records.format.compression = *compression;
      return PlanFileRecords(options.files(), records, plan);
    });

}  // namespace
}  // namespace penstock
