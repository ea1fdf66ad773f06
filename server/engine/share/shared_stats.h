// What a pipeline has in common with others, for statistics (engine/share/shared_prefixes.h).
//
// Threads:  plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

struct SharedStats {
  std::string stage;              // the last one that is shared
  std::vector<std::string> with;  // the other pipelines, in the order of their names
  std::string state;              // as SharedPrefixStats.state (control.proto) has it
  uint64_t hits = 0;              // elements that were taken from others
  uint64_t misses = 0;            // that were computed here meanwhile
  uint64_t elements = 0;          // that wait for somebody, of all of these pipelines together
  uint64_t bytes = 0;             // of those
};

}  // namespace penstock
