// How light and how coloured a uint8 image is, changed as Pillow's ImageOps and ImageEnhance change
// it.
//
// Threads:  safe from any thread.
// Limits:   uint8, of any number of channels; StartSaturation(), StartContrast() and StartHue() of
//           one or three, those by histograms of kHistogramsMax.
// Cost:     a pass; two where the whole image tells what is done to it. A hue costs some 20 ns a
//           pixel.
#pragma once

#include "server/image/row_source.h"

namespace penstock::expr {

// Each is computed channel by channel from how often each value occurs there, for which a channel
// takes 6 KiB. REQUIRES: CheckHistograms().
inline constexpr int64_t kHistogramsMax = 1024;
absl::Status CheckHistograms(const ImageView& image);
NextRows StartEqualize(const ImageView& image);
// `cutoff`: how many percent of the darkest and of the lightest values are left out of account.
NextRows StartAutocontrast(double cutoff_low, double cutoff_high, const ImageView& image);

// The highest `bits` of each value, the others 0.
NextRows StartPosterize(int64_t bits, const ImageView& image);
// Inverts the values of at least that.
NextRows StartSolarize(double threshold, const ImageView& image);

// Blends: 0 gives black, the mean grey, the image's greys, the image smoothed; 1 the image; beyond
// it the opposite.
NextRows StartBrightness(float factor, const ImageView& image);
NextRows StartContrast(float factor, const ImageView& image);
NextRows StartSaturation(float factor, const ImageView& image);
NextRows StartSharpness(float factor, const ImageView& image, Arena& scratch);

// The hue of each pixel, which Pillow's HSV has in 255ths of the circle, `shift` further on in a
// byte; of an image of one channel itself.
NextRows StartHue(uint8_t shift, const ImageView& image);

}  // namespace penstock::expr
