// The operations of RandAugment, TrivialAugment and AutoAugment, as torchvision applies them to
// Pillow's images.
//
// Threads:  safe from any thread.
// Limits:   uint8 images of one or three channels.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/image/affine.h"
#include "server/image/drawn.h"

namespace penstock::expr {

// In torchvision's order; the first 14 are those that are drawn evenly.
enum class AugmentOp : uint8_t {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
  kInvert,
};
inline constexpr uint64_t kNumDrawnOps = 14;

// How far the operations go.
struct AugmentSpace {
  double shear = 0.3;
  double translate = 150.0 / 331.0;  // of the image's side, or pixels
  bool translates_pixels = false;
  double rotate = 30;    // degrees
  double enhance = 0.9;  // brightness, colour, contrast, sharpness: 1 - this to 1 + this
  double posterize = 4;  // bits
};

// That of TrivialAugment, which goes further.
inline constexpr AugmentSpace kTrivialSpace = {.shear = 0.99,
                                               .translate = 32,
                                               .translates_pixels = true,
                                               .rotate = 135,
                                               .enhance = 0.99,
                                               .posterize = 6};

// What is done to an image.
struct AugmentStep {
  AugmentOp op = AugmentOp::kIdentity;
  double magnitude = 0;
};

// Whether the magnitude may as well be negative.
bool HasSign(AugmentOp op);
// The magnitude `bin` of `num_bins`, at least 2, from the weakest on.
double MagnitudeOf(AugmentOp op, const AugmentSpace& space, int64_t bin, int64_t num_bins,
                   int64_t height, int64_t width);

// One operation. REQUIRES: the image has pixels.
NextRows StartStep(const AugmentStep& step, const AffineOptions& options, const ImageView& image,
                   Arena& scratch);

// What is drawn for an image.
using DrawSteps =
    std::function<std::vector<AugmentStep>(Draws& draws, int64_t height, int64_t width)>;

// The call of a function that does to an image what is drawn for it, one step behind the other.
absl::StatusOr<BoundRowFunction> BindAugment(const Argument& image, const Argument& method,
                                             const Argument& fill, const Argument& seed,
                                             DrawSteps draw);

// An image of uint8, of one or three channels.
absl::Status CheckAugmentImage(const Argument& image);
// Of a row whose channels only the data tells, and of a type that may leave them open.
absl::Status CheckAugmentChannels(int64_t channels);

}  // namespace penstock::expr
