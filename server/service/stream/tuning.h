// What the daemon chooses of a pipeline by itself (Tuner), and what it may choose.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace penstock {

// Numbers that neither a spec nor an update names.
struct Tunes {
  bool workers = false;
  bool slots = false;
  bool read_ahead = false;

  bool any() const { return workers || slots || read_ahead; }
};

// Numbers that are others from now on.
struct Tuning {
  std::optional<int> workers;
  std::optional<uint32_t> slots;
  std::optional<std::map<std::string, int64_t>> read_ahead;  // of all sources, by stage
  std::vector<std::string> told;  // a sentence for each, for the log and those who listen to events
};

}  // namespace penstock
