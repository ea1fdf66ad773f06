// How a camera was held: the orientation that a JPEG file's EXIF data tells, and pixels turned by
// it.
//
// Threads:  safe from any thread.
// Source:   CIPA DC-008 (Exif 2.32), tag 0x0112 of the first image directory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// 1 to 8; 1, as it is, where nothing sound is told. Reads the segments before the first scan only.
int JpegOrientation(const uint8_t* data, size_t size);

// Whether height and width are exchanged.
inline bool OrientationSwapsSides(int orientation) { return orientation >= 5; }

// Writes an image as it should be looked at. `height` and `width` are those of `in`; `out` must not
// overlap it. REQUIRES: 1 to 8.
void TurnUpright(int orientation, const uint8_t* in, int height, int width, int channels,
                 uint8_t* out);

}  // namespace penstock
