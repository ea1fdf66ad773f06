// Data to try Penstock with, made on the spot: what `penstock make-sample` makes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace penstock::samples {

struct SampleOptions {
  int64_t records = 0;
  std::string directory;  // made if absent
  int shards = 1;
  uint64_t seed = 1;
};

// Positions of well-known chess games, then random continuations of them: the features `d` (bytes,
// 194) and `s` (int64) of client/samples/chess/encode.h in DIRECTORY/chess-00000-of-00008.tfrecord and
// so on. The same options give the same bytes.
absl::Status MakeChess(const SampleOptions& options);

// Pieces of the photographs that match the patterns, 320x240 to 500x375 pixels, as JPEGs of quality
// 90 with 4:2:0 subsampling: the features `image/encoded` (bytes) and `image/class/label` (int64,
// the ordinal of the photograph) in DIRECTORY/flowers-00000-of-00004.tfrecord and so on. Without
// patterns the photographs are drawn. The same options, photographs and libraries give the same
// bytes.
absl::Status MakeFlowers(const SampleOptions& options, const std::vector<std::string>& photos);

// Pieces of the photographs that match the patterns (without patterns: that are drawn), 400x300 to 600x450 pixels, and label images of the same size in 12 colours, both as
// PNG: DIRECTORY/images/000000.png and DIRECTORY/labels/000000.png and so on, and the same bytes as the features `image` and `label` in
// DIRECTORY/segmentation-00000-of-00004.tfrecord and so on. The same options, photographs and libraries give the same bytes.
absl::Status MakeSegmentation(const SampleOptions& options, const std::vector<std::string>& photos);

}  // namespace penstock::samples
