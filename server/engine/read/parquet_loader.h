// The rows of Parquet files as columns of a plan: what the op `parquet` loads.
//
// Threads:  as ColumnLoader.
// Owns:     what it was made of, and what was decoded last.
// Cost:     a copy of each value behind its decoding, neighbours together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "io/record/record_format.h"
#include "penstock/v1/ops.pb.h"
#include "server/engine/read/arrow_features.h"
#include "server/engine/read/arrow_rows.h"
#include "server/engine/read/column_loader.h"
#include "server/engine/read/parquet_stretches.h"

namespace penstock {

// The features that are asked for of Parquet files, which are Arrow's of the same columns; all
// columns where none is. InvalidArgument names the feature; Unimplemented, too, where its column is
// not read here.
absl::StatusOr<std::vector<ArrowFeature>> PlanParquetFeatures(
    const google::protobuf::RepeatedPtrField<v1::ArrowFeature>& wanted,
    const ParquetFooter& footer);

// The numbers of the features' columns in a file. InvalidArgument where they are of other types
// than in the first one.
absl::StatusOr<std::vector<uint32_t>> ParquetColumnsOf(const std::vector<ArrowFeature>& features,
                                                       const ParquetFooter& footer);

// What a source reads.
struct ParquetSource {
  std::vector<ArrowFeature> features;
  std::shared_ptr<const ParquetStretches> stretches;
  std::unique_ptr<const ArrowRows> rows;
  uint32_t first_file = 0;  // in the manifest
};

// The references of its elements are numbered by their `offset`.
std::unique_ptr<ColumnLoader> ParquetLoader(ParquetSource source);

// What tells where the rows of one of the files are (FileEntry::indexed).
std::shared_ptr<const RecordFormat> ParquetPlaces(std::shared_ptr<const ParquetStretches> stretches,
                                                  uint32_t file);

}  // namespace penstock
