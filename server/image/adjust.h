// What changes the colours of an image by a number or two, which may be constants or drawn.
//
// Threads:  safe from any thread.
// Cost:     one pass; contrast two, and memory for half of the image as float32 (all of one of
//           integers).
#pragma once

#include <array>

#include "server/image/pixels.h"

namespace penstock::expr {

PixelMap BrightnessMap(float delta);
// In turns of the circle of hues, -1 to 1; of three channels.
PixelMap HueMap(float delta);
// Of three channels.
PixelMap SaturationMap(float factor);
PixelMap GammaMap(float gamma, float gain);

// Writes an image whose shape has been set, with each value's distance from its channel's mean
// multiplied.
void RunContrast(float factor, DType dtype, const RowValue& image, Arena& scratch, RowOutput& out);

// The same of an image that comes in tiles, which are kept until its means are known.
std::unique_ptr<TileFilter> NewContrastFilter(float factor, DType dtype, const Shape& image,
                                              Arena& scratch, RowOutput& out);

// What a map makes of each value of a uint8 image, if it looks at one value alone.
using ByteTable = std::array<uint8_t, 256>;
ByteTable TableOf(const PixelMap& map);
void RunTable(const ByteTable& table, const RowValue& image, RowOutput& out);

}  // namespace penstock::expr
