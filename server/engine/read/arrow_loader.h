// The rows of Arrow files as columns of a plan: what the op `arrow` loads.
//
// Threads:  as ColumnLoader.
// Owns:     what it was made of.
// Cost:     numbers and strings without nulls a copy each, neighbours together; all else by
//           ArrowWalk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/record/record_format.h"
#include "server/engine/read/arrow_batches.h"
#include "server/engine/read/arrow_features.h"
#include "server/engine/read/arrow_rows.h"
#include "server/engine/read/column_loader.h"

namespace penstock {

// What a source reads.
struct ArrowSource {
  std::vector<ArrowFeature> features;
  std::shared_ptr<const ArrowBatches> batches;
  std::unique_ptr<const ArrowRows> rows;
  uint32_t first_file = 0;  // in the manifest
  OnDamage on_damage = OnDamage::kFail;
};

// The references of its elements are numbered by their `offset`.
std::unique_ptr<ColumnLoader> ArrowLoader(ArrowSource source);

// What tells where the rows of one of the files are (FileEntry::indexed).
std::shared_ptr<const RecordFormat> ArrowPlaces(std::shared_ptr<const ArrowBatches> batches,
                                                uint32_t file);

}  // namespace penstock
