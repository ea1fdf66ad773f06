#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "io/parquet/parquet_footer.h"
#include "server/engine/order/counted_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/read/parquet_loader.h"
#include "server/engine/stage/list_files.h"

namespace penstock {
namespace {

absl::Status WithPath(const absl::Status& status, const std::string& path) {
  if (absl::StrContains(status.message(), path)) return status;
  return WithMessage(status, absl::StrCat(status.message(), " (", path, ")"));
}

// Reads the footers of the files, one after another.
class ParquetFiles {
 public:
  ParquetFiles(const v1::Parquet& options, PlanBuilder& plan) : options_(options), plan_(plan) {}

  absl::Status Read(const Manifest& manifest) {
    const int sums = options_.footer_sum_size();
    if (sums > 0 && static_cast<size_t>(sums) != manifest.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("footer_sum: expected one for each file, found ", sums, " for ",
                       manifest.size(), " files"));
    }
    for (const FileEntry& entry : manifest) {
      if (IsAddress(entry.path)) {
        return absl::InvalidArgumentError(
            absl::StrCat("expected Parquet files on this machine, found an address: copy it (",
                         entry.path, ")"));
      }
      if (absl::Status status = ReadFile(entry); !status.ok()) return WithPath(status, entry.path);
    }
    return absl::OkStatus();
  }

  std::vector<ArrowFeature>& features() { return features_; }
  std::shared_ptr<const ParquetStretches> stretches() const { return stretches_; }

 private:
  absl::Status ReadFile(const FileEntry& entry) {
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file =
        plan_.files().OpenListed({entry.path, entry.size_bytes, entry.version});
    if (!file.ok()) return file.status();
    absl::StatusOr<ParquetFooter> footer = ParquetFooter::Read(**file);
    if (!footer.ok()) return footer.status();
    const auto number = static_cast<int>(stretches_->num_files());
    if (options_.footer_sum_size() > 0 && footer->sum() != options_.footer_sum(number)) {
      return absl::DataLossError(
          "the file has changed since the dataset was made: it has another footer; make the "
          "dataset anew");
    }
    if (features_.empty()) {
      absl::StatusOr<std::vector<ArrowFeature>> features =
          PlanParquetFeatures(options_.feature(), *footer);
      if (!features.ok()) return features.status();
      features_ = *std::move(features);
    }
    absl::StatusOr<std::vector<uint32_t>> columns = ParquetColumnsOf(features_, *footer);
    if (!columns.ok()) return columns.status();
    return stretches_->AddFile(*std::move(footer), *std::move(columns));
  }

  const v1::Parquet& options_;
  PlanBuilder& plan_;
  std::vector<ArrowFeature> features_;
  const std::shared_ptr<ParquetStretches> stretches_ = std::make_shared<ParquetStretches>();
};

const OpRegistration<v1::Parquet> kParquet(
    "parquet", {.place = OpPlace::kSource, .files = v1::Parquet::kFilesFieldNumber},
    [](const v1::Parquet& options, PlanBuilder& plan) -> absl::Status {
      if (options.files().empty() && plan.element_files()) {
        return absl::InvalidArgumentError(
            "files: expected at least one path or glob, found none; the file of an element cannot "
            "be read as Parquet");
      }
      absl::StatusOr<Manifest> manifest = ListFiles(options.files(), plan);
      if (!manifest.ok()) return manifest.status();
      ParquetFiles files(options, plan);
      if (absl::Status status = files.Read(*manifest); !status.ok()) return status;
      const std::shared_ptr<const ParquetStretches> stretches = files.stretches();
      absl::StatusOr<std::unique_ptr<ArrowRows>> rows = ArrowRows::Make(
          options.rows(), /*row_file=*/"", stretches->num_rows(), plan.files(), nullptr);
      if (!rows.ok()) return rows.status();
      for (uint32_t i = 0; i < manifest->size(); ++i)
        (*manifest)[i].indexed = ParquetPlaces(stretches, i);
      const FileRange range = plan.AddFiles(*std::move(manifest));
      CountedElements elements;
      elements.count = (*rows)->size();
      elements.step = 1;
      elements.first_file = range.first;
      plan.SetSource(ParquetLoader({.features = std::move(files.features()),
                                    .stretches = stretches,
                                    .rows = *std::move(rows),
                                    .first_file = range.first}),
                     range, CountedOrder(elements));
      plan.SetIndexed({.files = range, .permuted = [elements](uint64_t key, bool reshuffle) {
                         return CountedOrder(elements, CountedShuffle{key, reshuffle});
                       }});
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
