// How the tensors of an element make up a nest of tuples and dicts, as JSON (ring/layout.h).
//
// Threads: no state; safe from any thread.
// Limits:  64 KiB of text, 64 levels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

// The path names of a structure's tensors, in their order: `[null,{"a":null}]` has `0` and `1/a`,
// and `null` alone has `value`. InvalidArgument for a text that is no structure.
absl::StatusOr<std::vector<std::string>> StructurePaths(std::string_view structure);

// Whether two structures are one but for the order of keys in dicts.
bool SameStructure(std::string_view a, std::string_view b);

// That of component `i` of a tuple. InvalidArgument where there is none.
absl::StatusOr<std::string> StructureComponent(std::string_view structure, int64_t i);

}  // namespace penstock
