// How light and how coloured a uint8 image is, changed as Pillow's ImageOps and ImageEnhance change it.
//
// Threads:  safe from any thread.
// Limits:   uint8, of any number of channels; StartSaturation() and StartContrast() of one or three.
// Cost:     a pass; two where the whole image tells what is done to it.
#pragma once

#include "server/image/row_source.h"

namespace penstock::expr {

// Each is computed channel by channel from how often each value occurs there.
NextRows StartEqualize(const ImageView& image);
// `cutoff`: how many percent of the darkest and of the lightest values are left out of account.
NextRows StartAutocontrast(double cutoff_low, double cutoff_high, const ImageView& image);

// The highest `bits` of each value, the others 0.
NextRows StartPosterize(int64_t bits, const ImageView& image);
// Inverts the values of at least that.
NextRows StartSolarize(double threshold, const ImageView& image);

// Blends: 0 gives black, the mean grey, the image's greys, the image smoothed; 1 the image; beyond it the opposite.
NextRows StartBrightness(float factor, const ImageView& image);
NextRows StartContrast(float factor, const ImageView& image);
NextRows StartSaturation(float factor, const ImageView& image);
NextRows StartSharpness(float factor, const ImageView& image, Arena& scratch);

}  // namespace penstock::expr
