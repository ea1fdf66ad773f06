#include "absl/strings/str_cat.h"
#include "io/record/fixed_length_format.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/file_records.h"

namespace penstock {
namespace {

absl::Status CheckBytes(const char* field, int64_t bytes, int64_t least) {
  if (bytes >= least && bytes <= static_cast<int64_t>(kMaxRecordBytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected ", least, " to ", kMaxRecordBytes, ", found ", bytes));
}

const OpRegistration<v1::FixedLengthRecord> kFixedLengthRecord(
    "fixed_length_record",
    {.place = OpPlace::kSource, .files = v1::FixedLengthRecord::kFilesFieldNumber},
    [](const v1::FixedLengthRecord& options, PlanBuilder& plan) -> absl::Status {
      FileRecordsOptions records;
      absl::Status status = CheckBytes("record_bytes", options.record_bytes(), 1);
      if (status.ok()) status = CheckBytes("header_bytes", options.header_bytes(), 0);
      if (status.ok()) status = CheckBytes("footer_bytes", options.footer_bytes(), 0);
      if (!status.ok()) return status;
      records.format.stream.format =
          FixedLengthFormat({.record_bytes = static_cast<uint64_t>(options.record_bytes()),
                             .header_bytes = static_cast<uint64_t>(options.header_bytes()),
                             .footer_bytes = static_cast<uint64_t>(options.footer_bytes())});
      absl::StatusOr<Compression> compression = CompressionFromName(options.compression());
      if (!compression.ok()) return compression.status();
      records.format.compression = *compression;
      status = ReadCycle(options.has_cycle_length(), options.cycle_length(),
                         options.has_block_length(), options.block_length(), &records);
      if (!status.ok()) return status;
      return PlanFileRecords(options.files(), records, plan);
    });

}  // namespace
}  // namespace penstock
