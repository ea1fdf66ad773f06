// Images blurred by a bell of weights along rows and columns.
//
// Threads:  safe from any thread.
// Limits:   uint8 and float32, of any number of channels.
// Cost:     two multiplications and additions for each value and weight.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/image/row_source.h"

namespace penstock::expr {

// An odd number of weights; they fall to both sides as a normal distribution of this width in
// pixels does, and add up to 1.
std::vector<float> GaussianWeights(int64_t size, double sigma);

// An image whose sides are longer than half of the weights; the others are an error.
absl::Status CheckBlur(const ImageView& image, int64_t size);
// Beyond its edges the image goes on mirrored, without the edge itself.
NextRows StartBlur(std::vector<float> weights, DType dtype, const ImageView& image, Arena& scratch);

}  // namespace penstock::expr
