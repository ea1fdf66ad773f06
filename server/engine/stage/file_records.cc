#include "server/engine/stage/file_records.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/read/record_loader.h"
#include "server/engine/stage/list_files.h"

namespace penstock {
namespace {

constexpr int64_t kMaxCycleLength = 1024;

}  // namespace

absl::Status PlanFileRecords(const google::protobuf::RepeatedPtrField<std::string>& patterns,
                             const FileRecordsOptions& options, PlanBuilder& plan) {
  FileRecordsOptions placed = options;
  placed.format.stage = plan.stage_index();
  const auto are_located = std::make_shared<bool>(false);
  placed.are_located = are_located;
  const std::shared_ptr<const RecordFormat> indexed =
      options.format.access() != nullptr ? options.format.stream.format : nullptr;
  const bool seeks = indexed != nullptr && !options.damage.skip_shard;
  const CursorClass cursor_class = seeks ? CursorClass::kSeek : CursorClass::kReplayOrder;
  if (indexed == nullptr) {
    plan.AddNotice(
        "compressed files have no index: a cursor is reached by reading the pass up to it again");
  }
  if (patterns.empty() && plan.element_files()) {
    plan.SetRecordFiles(*plan.element_files(), indexed);
    plan.SetSource(
        std::make_unique<RecordLoader>(placed.format, *plan.element_files(), are_located),
        *plan.element_files(), ElementRecords(plan.stage(), placed), cursor_class);
    plan.KeyByElement(/*by_its_file=*/true);
    return absl::OkStatus();
  }
  if (patterns.empty()) {
    return absl::InvalidArgumentError(
        "files: expected at least one path or glob, found none; only inside of interleave or "
        "flat_map "
        "over paths, as list_files gives them, is the element's file read");
  }
  absl::StatusOr<Manifest> listed = ListFiles(patterns, plan);
  if (!listed.ok()) return listed.status();
  Manifest manifest = *std::move(listed);
  for (FileEntry& entry : manifest) {
    entry.indexed = indexed;
    entry.is_stream = indexed == nullptr;
  }
  if (std::all_of(manifest.begin(), manifest.end(),
                  [](const FileEntry& file) { return file.size_bytes == 0; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("all ", manifest.size(), " files are empty, such as ", manifest.front().path));
  }
  const FileRange files = plan.AddFiles(std::move(manifest));
  plan.SetSource(std::make_unique<RecordLoader>(placed.format, files, are_located), files,
                 FileRecords(files, plan.stage(), placed), cursor_class);
  if (seeks)
    plan.SetIndexed({.files = files,
                     .format = indexed,
                     .gives_path = options.format.gives_path,
                     .on_damage = options.format.stream.on_damage,
                     .limits = options.damage.limits});
  return absl::OkStatus();
}

absl::Status ReadCycle(bool has_cycle_length, int64_t cycle_length, bool has_block_length,
                       int64_t block_length, FileRecordsOptions* options) {
  if (has_cycle_length) {
    if (cycle_length < 1 || cycle_length > kMaxCycleLength) {
      return absl::InvalidArgumentError(
          absl::StrCat("cycle_length: expected 1 to ", kMaxCycleLength, ", found ", cycle_length));
    }
    options->cycle_length = static_cast<uint32_t>(cycle_length);
  }
  if (has_block_length) {
    if (block_length < 1 || block_length > INT32_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat("block_length: expected at least 1, found ", block_length));
    }
    options->block_length = static_cast<uint64_t>(block_length);
  }
  return absl::OkStatus();
}

absl::Status ReadDamagePolicy(const v1::DamagePolicy& policy, FileRecordsOptions* options) {
  DamagePolicy& damage = options->damage;
  damage.skip_shard = policy.on_damage() == v1::DamagePolicy::SKIP_SHARD;
  if (policy.on_damage() == v1::DamagePolicy::SKIP_RECORD)
    options->format.stream.on_damage = OnDamage::kSkipRecord;
  if (damage.skip_shard) options->format.stream.on_damage = OnDamage::kSkipShard;
  return ReadSkipLimits(policy, "damage.", &damage.limits);
}

}  // namespace penstock
