// Parquet data in memory, read as a source reads it: by all of its columns that can be read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "io/parquet/parquet_footer.h"
#include "server/engine/read/parquet_loader.h"
#include "tests/support/arrow_source.h"
#include "tests/support/memory_file.h"

namespace penstock::test {

class ParquetInMemory {
 public:
  // The features of all columns that can be read, of a file that comes `times`. A null is
  // `is_filled` or an error.
  static absl::StatusOr<std::unique_ptr<ParquetInMemory>> Open(
      std::shared_ptr<RandomAccessFile> file, bool is_filled = true, size_t times = 1,
      uint64_t stretch_bytes = kParquetStretchBytes) {
    std::unique_ptr<ParquetInMemory> opened(new ParquetInMemory(file));
    auto stretches = std::make_shared<ParquetStretches>(stretch_bytes);
    ParquetSource source;
    for (size_t i = 0; i < times; ++i) {
      auto footer = ParquetFooter::Read(*file);
      if (!footer.ok()) return footer.status();
      if (i == 0) opened->Plan(*footer, is_filled, &source);
      auto columns = ParquetColumnsOf(source.features, *footer);
      if (!columns.ok()) return columns.status();
      absl::Status status = stretches->AddFile(*std::move(footer), *std::move(columns));
      if (!status.ok()) return status;
    }
    auto rows = ArrowRows::Make({}, "", stretches->num_rows(), opened->files_, nullptr);
    if (!rows.ok()) return rows.status();
    source.stretches = stretches;
    source.rows = *std::move(rows);
    opened->stretches = stretches;
    for (size_t i = 0; i < times; ++i) {
      opened->manifest_.push_back(EntryOf(*file));
      opened->manifest_[i].indexed = ParquetPlaces(stretches, static_cast<uint32_t>(i));
    }
    opened->table_ = std::make_unique<FileTable>(opened->files_, opened->manifest_);
    opened->loader = ParquetLoader(std::move(source));
    return opened;
  }

  // As LoadAsText().
  absl::StatusOr<std::string> Load(uint64_t first, uint32_t count) {
    return LoadAsText(*loader, *table_, first, count);
  }

  std::shared_ptr<const ParquetStretches> stretches;
  std::unique_ptr<ColumnLoader> loader;

 private:
  explicit ParquetInMemory(std::shared_ptr<RandomAccessFile> file) : files_(std::move(file)) {}

  static void Plan(const ParquetFooter& footer, bool is_filled, ParquetSource* source) {
    for (const ParquetColumn& column : footer.columns()) {
      google::protobuf::RepeatedPtrField<v1::ArrowFeature> wanted;
      v1::ArrowFeature& feature = *wanted.Add();
      feature.set_name("f");
      feature.set_column(ArrowPath({column.path[0]}));
      auto planned = PlanParquetFeatures(wanted, footer);
      if (!planned.ok()) continue;
      ArrowFeature& one = planned->front();
      one.name = absl::StrCat("f", source->features.size());
      if (is_filled)
        one.default_value = std::string(std::max<size_t>(1, DTypeSize(one.type.dtype)), '\7');
      source->features.push_back(std::move(one));
    }
  }

  OneFile files_;
  Manifest manifest_;
  std::unique_ptr<FileTable> table_;
};

}  // namespace penstock::test
