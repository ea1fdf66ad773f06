// Photographs in memory: as much of the JPEG format and of scaling as the samples need.
//
// Threads:  safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::samples {

struct Photo {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;  // rows from top to bottom, 3 bytes a pixel
};

// Of a photograph in memory, which has about 15 MB then.
inline constexpr int kPhotoSideMax = 2600;

// Reads a JPEG file; a large one at 1/2, 1/4 or 1/8 of its size, so that neither side exceeds
// kPhotoSideMax where that suffices.
absl::StatusOr<Photo> ReadJpeg(const std::string& path);

// The photographs that match the patterns (paths or globs); InvalidArgument for one of less than
// width x width * 3 / 4 pixels.
absl::StatusOr<std::vector<Photo>> ReadPhotos(const std::vector<std::string>& patterns, int width);

// The rectangle at (x, y), scaled to width x height: each new pixel is the mean of the old ones
// that it covers. REQUIRES: the rectangle lies inside the photo and is not smaller than the result.
Photo CutAndScale(const Photo& photo, int x, int y, int cut_width, int cut_height, int width,
                  int height);

// A baseline JPEG with 4:2:0 subsampling.
std::string EncodeJpeg(const Photo& photo, int quality);

}  // namespace penstock::samples
