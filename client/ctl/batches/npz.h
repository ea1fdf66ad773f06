// Batches as files that numpy.load reads: uncompressed zips of .npy files (NumPy's format, version
// 1.0: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
//
//   dense numbers    NAME
//   strings          NAME.offsets, NAME.bytes, and NAME.shape where it differs from batch to batch:
//                    string i is bytes[offsets[i]:offsets[i + 1]]
//   ragged numbers   NAME.values, NAME.row_splits_0, …: the outermost axis first
//   sparse           as above, or NAME.values; NAME.indices and NAME.dense_shape
//   ragged strings   NAME.offsets, NAME.bytes, NAME.row_splits_0, …
//
// Threads: safe from any thread.
// Owns:    an NpzArray is a view of its tensor.
// Cost:    one copy of the batch in memory while it is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock.hpp"

namespace penstock::ctl {

struct NpzArray {
  std::string name;
  int dtype = 0;  // PENSTOCK_…
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

// The arrays that hold a tensor, in the order above.
std::vector<NpzArray> NpzArrays(const Tensor& tensor);

// The file stands complete at `path` afterwards, or is not there.
absl::Status WriteNpz(const std::string& path, const Batch& batch);

}  // namespace penstock::ctl
