#include <algorithm>

#include "absl/strings/match.h"
#include "io/record/json_line_format.h"
#include "server/codec/json_fields.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/file_records.h"

namespace penstock {
namespace {

// By how all paths end, where nothing says it.
std::string CompressionOf(const v1::JsonLines& options) {
  if (options.has_compression()) return options.compression();
  const auto all_end_in = [&options](absl::string_view ending) {
    return !options.files().empty() &&
           std::all_of(options.files().begin(), options.files().end(),
                       [ending](const std::string& path) { return absl::EndsWith(path, ending); });
  };
  return all_end_in(".gz") ? "GZIP" : all_end_in(".zst") ? "ZSTD" : "";
}

const OpRegistration<v1::JsonLines> kJsonLines(
    "json_lines", {.place = OpPlace::kSource, .files = v1::JsonLines::kFilesFieldNumber},
    [](const v1::JsonLines& options, PlanBuilder& plan) -> absl::Status {
      const absl::StatusOr<JsonErrors> errors = JsonErrorsFromName(options.errors());
      if (!errors.ok()) return errors.status();
      FileRecordsOptions records;
      const absl::StatusOr<Compression> compression = CompressionFromName(CompressionOf(options));
      if (!compression.ok()) return compression.status();
      records.format.compression = *compression;
      absl::Status status = ReadCycle(options.has_cycle_length(), options.cycle_length(),
                                      options.has_block_length(), options.block_length(), &records);
      if (status.ok()) status = ReadDamagePolicy(options.damage(), &records);
      if (!status.ok()) return status;
      records.format.stream.format =
          JsonLineFormat(*errors == JsonErrors::kReplace, records.format.stream.on_damage);
      return PlanFileRecords(options.files(), records, plan);
    });

}  // namespace
}  // namespace penstock
