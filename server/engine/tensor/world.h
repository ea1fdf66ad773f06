// Several hosts that make one stream together: all make the same order of the same batches, and
// each fills its rows of them.
//
//   a batch of n rows    0 │ host 0 │ n/H │ host 1 │ 2n/H │ … │ host H-1 │ n        host h: from h·n/H up to (h+1)·n/H, rounded down
//
// No op knows of it, and no cursor: it is part of what a plan is made for, beside the spec.
//
// Threads: a value.
// Limits:  kMaxHosts hosts.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace penstock {

// Consecutive rows of a batch.
struct RowSpan {
  uint32_t first = 0;
  uint32_t count = 0;

  bool Has(uint64_t row) const { return row >= first && row - first < count; }
};

struct World {
  static constexpr uint32_t kMaxHosts = 1 << 16;

  uint32_t hosts = 1;
  uint32_t host = 0;

  bool is_alone() const { return hosts == 1; }
  bool operator==(const World& other) const { return hosts == other.hosts && host == other.host; }

  // Which of a batch's `rows` rows are this host's.
  RowSpan RowsOf(uint32_t rows) const {
    const auto first = static_cast<uint32_t>(uint64_t{host} * rows / hosts);
    const auto end = static_cast<uint32_t>((uint64_t{host} + 1) * rows / hosts);
    return {first, end - first};
  }
  // The most that this is for any batch of at most that many rows: a shorter one may give a host
  // one row more than a longer one.
  uint32_t MostRows(uint32_t rows) const {
    return static_cast<uint32_t>((uint64_t{rows} + hosts - 1) / hosts);
  }

  // InvalidArgument for numbers that are no world.
  absl::Status Check() const;
};

}  // namespace penstock
