#include "io/record/text_line_format.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/file_records.h"

namespace penstock {
namespace {

const OpRegistration<v1::TextLine> kTextLine(
    "text_line", {.place = OpPlace::kSource, .files = v1::TextLine::kFilesFieldNumber},
    [](const v1::TextLine& options, PlanBuilder& plan) -> absl::Status {
      FileRecordsOptions records;
      records.format.stream.format = TextLineFormat();
      absl::StatusOr<Compression> compression = CompressionFromName(options.compression());
      if (!compression.ok()) return compression.status();
      records.format.compression = *compression;
      absl::Status status = ReadCycle(options.has_cycle_length(), options.cycle_length(),
                                      options.has_block_length(), options.block_length(), &records);
      if (!status.ok()) return status;
      return PlanFileRecords(options.files(), records, plan);
    });

}  // namespace
}  // namespace penstock
