#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "io/arrow/arrow_file.h"
#include "server/engine/order/counted_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/read/arrow_loader.h"
#include "server/engine/read/skip_limits.h"
#include "server/engine/stage/list_files.h"

namespace penstock {
namespace {

// What a message calls at most of what was left out.
constexpr size_t kShownPlaces = 4;

absl::StatusOr<OnDamage> ReadPolicy(const v1::DamagePolicy& policy, SkipLimits* limits) {
  if (policy.has_max_skipped_fraction()) {
    return absl::InvalidArgumentError(
        "damage.max_skipped_fraction: expected none, since nobody knows how many rows a damaged "
        "record batch had; give max_skipped");
  }
  if (absl::Status status = ReadSkipLimits(policy, "damage.", limits); !status.ok()) return status;
  switch (policy.on_damage()) {
    case v1::DamagePolicy::SKIP_RECORD:
      return OnDamage::kSkipRecord;
    case v1::DamagePolicy::SKIP_SHARD:
      return OnDamage::kSkipShard;
    default:
      return OnDamage::kFail;
  }
}

// Reads the metadata of the files, one after another.
class ArrowFiles {
 public:
  ArrowFiles(const v1::Arrow& options, OnDamage on_damage, PlanBuilder& plan)
      : options_(options), on_damage_(on_damage), plan_(plan) {}

  absl::Status Read(const Manifest& manifest) {
    for (const FileEntry& entry : manifest) {
      if (IsAddress(entry.path)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "expected Arrow files on this machine, found an address: copy it (", entry.path, ")"));
      }
      if (absl::Status status = ReadFile(entry); !status.ok()) return status;
    }
    if (batches_ != nullptr) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("none of the ", manifest.size(), " files is sound: ", places_.front()));
  }

  std::vector<ArrowFeature>& features() { return features_; }
  std::shared_ptr<const ArrowBatches> batches() const { return batches_; }
  // The places that were left out, with their addresses.
  const std::vector<std::string>& places() const { return places_; }

 private:
  absl::Status ReadFile(const FileEntry& entry) {
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> opened =
        plan_.files().OpenListed({entry.path, entry.size_bytes, entry.version});
    if (!opened.ok()) return opened.status();
    absl::StatusOr<std::unique_ptr<ArrowFile>> file = ArrowFile::Open(*opened, on_damage_);
    if (!file.ok()) return LeaveOut(file.status());
    if (batches_ == nullptr) {
      absl::StatusOr<std::vector<ArrowFeature>> features =
          PlanArrowFeatures(options_.feature(), (*file)->schema());
      if (!features.ok()) return WithPath(features.status(), entry.path);
      features_ = *std::move(features);
      batches_ = std::make_shared<ArrowBatches>(features_.size());
      for (uint32_t i = 0; i < num_before_; ++i) batches_->AddNothing();
    }
    absl::StatusOr<std::vector<ArrowColumn>> columns = ArrowColumnsOf(features_, (*file)->schema());
    if (!columns.ok()) return WithPath(columns.status(), entry.path);
    std::vector<Damage> damage;
    if (absl::Status status = batches_->AddFile(**file, *columns, &damage); !status.ok())
      return status;
    for (const Damage& place : damage) {
      places_.push_back(absl::StrCat(DamageReasonName(place.reason), ", ", place.length, " bytes (",
                                     entry.path, ", offset ", place.offset, ")"));
    }
    return absl::OkStatus();
  }

  // A file that is none.
  absl::Status LeaveOut(const absl::Status& status) {
    if (on_damage_ == OnDamage::kFail || !absl::IsDataLoss(status) || IsFileShrunk(status))
      return status;
    places_.push_back(std::string(status.message()));
    if (batches_ == nullptr) {
      ++num_before_;
    } else {
      batches_->AddNothing();
    }
    return absl::OkStatus();
  }

  static absl::Status WithPath(const absl::Status& status, const std::string& path) {
    if (absl::StrContains(status.message(), path)) return status;
    return WithMessage(status, absl::StrCat(status.message(), " (", path, ")"));
  }

  const v1::Arrow& options_;
  const OnDamage on_damage_;
  PlanBuilder& plan_;
  std::vector<ArrowFeature> features_;
  std::shared_ptr<ArrowBatches> batches_;  // null until a file is sound
  uint32_t num_before_ = 0;                // files before it
  std::vector<std::string> places_;
};

absl::Status CheckSkipped(const std::vector<std::string>& places, const SkipLimits& limits,
                          PlanBuilder& plan) {
  if (places.empty()) return absl::OkStatus();
  std::string text = absl::StrCat("damaged places that are left out, ", places.size(), " in all: ");
  for (size_t i = 0; i < std::min(places.size(), kShownPlaces); ++i)
    absl::StrAppend(&text, i == 0 ? "" : "; ", places[i]);
  if (places.size() > kShownPlaces) text += "; …";
  if (places.size() > limits.skipped_max) {
    return absl::DataLossError(
        absl::StrCat(text, "; expected at most ", limits.skipped_max, " (damage.max_skipped)"));
  }
  plan.AddNotice(text);
  return absl::OkStatus();
}

const OpRegistration<v1::Arrow> kArrow(
    "arrow",
    {.place = OpPlace::kSource,
     .files = v1::Arrow::kFilesFieldNumber,
     .arrays = v1::Arrow::kRowFileFieldNumber},
    [](const v1::Arrow& options, PlanBuilder& plan) -> absl::Status {
      if (options.files().empty() && plan.element_files()) {
        return absl::InvalidArgumentError(
            "files: expected at least one path or glob, found none; the file of an element cannot "
            "be read as Arrow");
      }
      SkipLimits limits;
      absl::StatusOr<OnDamage> on_damage = ReadPolicy(options.damage(), &limits);
      if (!on_damage.ok()) return on_damage.status();
      absl::StatusOr<Manifest> manifest = ListFiles(options.files(), plan);
      if (!manifest.ok()) return manifest.status();
      ArrowFiles files(options, *on_damage, plan);
      absl::Status status = files.Read(*manifest);
      if (status.ok()) status = CheckSkipped(files.places(), limits, plan);
      if (!status.ok()) return status;
      const std::shared_ptr<const ArrowBatches> batches = files.batches();
      FileEntry row_file;
      absl::StatusOr<std::unique_ptr<ArrowRows>> rows = ArrowRows::Make(
          options.rows(), options.row_file(), batches->num_rows(), plan.files(), &row_file);
      if (!rows.ok()) return rows.status();
      for (uint32_t i = 0; i < manifest->size(); ++i)
        (*manifest)[i].indexed = ArrowPlaces(batches, i);
      if (!row_file.path.empty()) manifest->push_back(row_file);
      const FileRange range = plan.AddFiles(*std::move(manifest));
      CountedElements elements;
      elements.count = (*rows)->size();
      elements.step = 1;
      elements.first_file = range.first;
      plan.SetSource(ArrowLoader({.features = std::move(files.features()),
                                  .batches = batches,
                                  .rows = *std::move(rows),
                                  .first_file = range.first,
                                  .on_damage = *on_damage}),
                     range, CountedOrder(elements));
      plan.SetIndexed({.files = range, .permuted = [elements](uint64_t key, bool reshuffle) {
                         return CountedOrder(elements, CountedShuffle{key, reshuffle});
                       }});
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
