#include <optional>
#include <utility>

#include "io/record/record_format.h"
#include "io/record/record_stream.h"
#include "io/record/resynchronise.h"
#include "io/record/tfrecord_access.h"
#include "io/record/tfrecord_frame.h"

namespace penstock {
namespace {

class TfrecordStream final : public RecordStream {
 public:
  explicit TfrecordStream(RecordSource source) : RecordStream(std::move(source)) {}

 protected:
  void NextRecords(RecordChunk* chunk) override {
    while (taken() < ByteWindow::kPieceBytes) {
      const uint8_t* const frame = window().data() + taken();
      const uint64_t left = window().size() - taken();
      if (left >= kFrameBytes) {
        const uint64_t length = LoadU64(frame);
        if (length <= kMaxRecordBytes && length + kFrameBytes <= left && HeaderHolds(frame) &&
            DataHolds(frame + kRecordHeaderBytes, length)) {
          chunk->records.push_back(
              {window().offset() + taken(), static_cast<uint32_t>(length), false});
          Take(length + kFrameBytes);
          continue;
        }
      }
      // Everything else moves the window, which the records before must not see.
      if (taken() > 0 || !Gather(chunk)) return;
    }
  }

 private:
  // Looks at the frame at the window's beginning, which is bad or not yet whole.
  bool Gather(RecordChunk* chunk) {
    const uint64_t offset = window().offset();
    absl::Status status = window().Ensure(kRecordHeaderBytes);
    if (!status.ok()) {
      EndOfStream(chunk, offset, status);
      return false;
    }
    if (window().size() == 0) {
      End(chunk);
      return false;
    }
    std::optional<DamageReason> reason;
    if (window().size() < kRecordHeaderBytes) {
      reason = DamageReason::kCutHeader;
    } else {
      reason = CheckHeader(window().data(), window().plain_end() - offset);
    }
    if (!reason) {
      const uint64_t length = LoadU64(window().data());
      status = window().Ensure(length + kFrameBytes);
      if (!status.ok()) {
        EndOfStream(chunk, offset, status);
        return false;
      }
      if (window().size() < length + kFrameBytes) {
        reason = DamageReason::kCutRecord;
      } else if (!DataHolds(window().data() + kRecordHeaderBytes, length)) {
        reason = DamageReason::kDataChecksum;
      } else {
        return true;
      }
    }
    if (!skips_damage()) {
      const uint64_t left = is_plain() ? window().plain_end() - offset : window().size();
      Fail(chunk, offset, *reason, DescribeDamage(*reason, window().data(), left, offset == 0));
      return false;
    }
    Damage damage;
    status = Resynchronise(window(), *reason, &damage);
    if (!status.ok()) {
      EndOfStream(chunk, offset, status);
      return false;
    }
    chunk->damage.push_back(damage);
    return true;
  }
};

class Tfrecords final : public RecordFormat {
 public:
  std::string ContentKey() const override { return "tfrecord"; }
  const RecordAccess* access() const override { return &TfrecordAccess(); }
  bool has_checksums() const override { return true; }
  uint32_t header_bytes() const override { return kRecordHeaderBytes; }
  std::unique_ptr<RecordStream> NewStream(RecordSource source) const override {
    return std::make_unique<TfrecordStream>(std::move(source));
  }
};

}  // namespace

const std::shared_ptr<const RecordFormat>& TfrecordFormat() {
  static const auto* const format =
      new std::shared_ptr<const RecordFormat>(std::make_shared<Tfrecords>());
  return *format;
}

}  // namespace penstock
