#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/file_records.h"

namespace penstock {
namespace {

const OpRegistration<v1::Tfrecord> kTfrecord(
    "tfrecord", {.place = OpPlace::kSource, .files = v1::Tfrecord::kFilesFieldNumber},
    [](const v1::Tfrecord& options, PlanBuilder& plan) -> absl::Status {
      FileRecordsOptions records;
      absl::StatusOr<Compression> compression = CompressionFromName(options.compression());
      if (!compression.ok()) return compression.status();
      records.format.compression = *compression;
      if (options.has_cycle_length() && options.has_num_parallel_reads()) {
        return absl::InvalidArgumentError(
            "num_parallel_reads: is another name of cycle_length; expected one of them, found "
            "both");
      }
      absl::Status status = ReadCycle(
          options.has_cycle_length() || options.has_num_parallel_reads(),
          options.has_cycle_length() ? options.cycle_length() : options.num_parallel_reads(),
          options.has_block_length(), options.block_length(), &records);
      if (status.ok()) status = ReadDamagePolicy(options.damage(), &records);
      if (!status.ok()) return status;
      return PlanFileRecords(options.files(), records, plan);
    });

}  // namespace
}  // namespace penstock
