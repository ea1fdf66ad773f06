// The files that a source's paths and globs stand for.
//
// Threads: any; no state.
// Cost:    that of the file system's listing.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/read/file_table.h"

namespace penstock {

enum class FileOrder : uint8_t {
  // That of the patterns, and where one matches several files the byte order of their paths
  kOfList,
  kByPath,  // the byte order of all paths
};

// A file that several patterns match comes as often. An error when there is no pattern, or one
// matches nothing. Raises the meaning of the stage that is planned where the order of the list is
// not that of the paths.
absl::StatusOr<Manifest> ListFiles(const google::protobuf::RepeatedPtrField<std::string>& patterns,
                                   PlanBuilder& plan, FileOrder order = FileOrder::kOfList);

}  // namespace penstock
