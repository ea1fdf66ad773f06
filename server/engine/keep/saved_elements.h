// A source of elements that `save` has written (io/element/element_file.h).
//
// Threads:  one thread, while a plan is made.
// Owns:     nothing; the plan's loader owns the map.
// Cost:     reads the file's index and checks it; no element is touched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "io/element/element_file.h"
#include "server/engine/plan/plan_builder.h"

namespace penstock {

// Begins the dataset with those of the file, or of one of its shards. NotFound where there is none,
// DataLoss for one that is not whole.
absl::Status LoadSavedElements(const std::string& path, std::optional<int64_t> shard,
                               PlanBuilder& plan);

}  // namespace penstock
