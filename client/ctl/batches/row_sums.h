// A checksum for each row of a batch: two batches differ in those rows whose sums do.
//
// Threads: safe from any thread.
// Cost:    reads all of the batch once.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock.hpp"

namespace penstock::ctl {

// As many as the batch has rows. A tensor without rows of its own counts for the first one. Of
// variable size, sizes count too.
std::vector<uint32_t> RowSums(const Batch& batch);

}  // namespace penstock::ctl
