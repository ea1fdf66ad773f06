#include "server/image/augment.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/image/tone.h"

namespace penstock::expr {
namespace {

// Number `index` of `count` from `first` to `last`, with the bits of torch.linspace: from whichever
// end is nearer, rounded once.
float Spaced(double first, double last, int64_t index, int64_t count) {
  const auto start = static_cast<float>(first), end = static_cast<float>(last);
  const float step = (end - start) / static_cast<float>(count - 1);
  if (index < count / 2) return std::fma(step, static_cast<float>(index), start);
  return std::fma(-step, static_cast<float>(count - 1 - index), end);
}

class AugmentSteps {
 public:
  AugmentSteps(const AffineOptions& options, DrawSteps draw)
      : options_(options), draw_(std::move(draw)) {}

  absl::Status Run(Draws& draws, const RowValue& row, Arena& scratch, RowOutput& out) const {
    if (absl::Status status = CheckAugmentChannels(row.shape[2]); !status.ok()) return status;
    ImageView image = ViewOf(DType::kUint8, row);
    if (image.height == 0 || image.width == 0) return absl::OkStatus();
    std::vector<AugmentStep> steps = draw_(draws, image.height, image.width);
    for (const AugmentStep& step : steps) {
      draws.Note("op", static_cast<double>(step.op));
      draws.Note("magnitude", step.magnitude);
    }
    std::erase_if(steps, [](const AugmentStep& step) { return step.op == AugmentOp::kIdentity; });
    if (steps.empty()) steps.emplace_back();
    // All but the last go into memory of their own.
    for (size_t i = 0; i + 1 < steps.size(); ++i) {
      uint8_t* const pixels =
          scratch.Allocate(static_cast<size_t>(image.height * image.row_bytes()) + kRowsPadding);
      StartStep(steps[i], options_, image, scratch)(image.height, pixels);
      image.pixels = pixels;
    }
    WriteRows(image, StartStep(steps.back(), options_, image, scratch), out);
    return absl::OkStatus();
  }

 private:
  const AffineOptions options_;
  const DrawSteps draw_;
};

}  // namespace

absl::Status CheckAugmentChannels(int64_t channels) {
  if (channels == 1 || channels == 3 || channels == kUnknownSize) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("expected one or three channels, found ", channels));
}

bool HasSign(AugmentOp op) { return op >= AugmentOp::kShearX && op <= AugmentOp::kSharpness; }

double MagnitudeOf(AugmentOp op, const AugmentSpace& space, int64_t bin, int64_t num_bins,
                   int64_t height, int64_t width) {
  const auto up_to = [&](double most) { return Spaced(0, most, bin, num_bins); };
  const auto moved = [&](int64_t side) {
    return up_to(space.translates_pixels ? space.translate
                                         : space.translate * static_cast<double>(side));
  };
  switch (op) {
    case AugmentOp::kShearX:
    case AugmentOp::kShearY:
      return up_to(space.shear);
    case AugmentOp::kTranslateX:
      return moved(width);
    case AugmentOp::kTranslateY:
      return moved(height);
    case AugmentOp::kRotate:
      return up_to(space.rotate);
    case AugmentOp::kBrightness:
    case AugmentOp::kColor:
    case AugmentOp::kContrast:
    case AugmentOp::kSharpness:
      return up_to(space.enhance);
    case AugmentOp::kPosterize: {
      // How many bits are left.
      const auto bins_a_bit =
          static_cast<float>(static_cast<double>(num_bins - 1) / space.posterize);
      return 8 - std::nearbyint(static_cast<float>(bin) / bins_a_bit);
    }
    case AugmentOp::kSolarize:
      return Spaced(255, 0, bin, num_bins);
    case AugmentOp::kIdentity:
    case AugmentOp::kAutoContrast:
    case AugmentOp::kEqualize:
    case AugmentOp::kInvert:
      break;
  }
  return 0;
}

NextRows StartStep(const AugmentStep& step, const AffineOptions& options, const ImageView& image,
                   Arena& scratch) {
  const double magnitude = step.magnitude;
  const auto factor = static_cast<float>(1.0 + magnitude);
  const auto moved = [&](const AffineMatrix& matrix) {
    return StartAffine(matrix, options, DType::kUint8, image);
  };
  switch (step.op) {
    case AugmentOp::kShearX:
      return moved({1, magnitude, 0, 0, 1, 0});
    case AugmentOp::kShearY:
      return moved({1, 0, 0, magnitude, 1, 0});
    case AugmentOp::kTranslateX:
      return moved({1, 0, -std::trunc(magnitude), 0, 1, 0});
    case AugmentOp::kTranslateY:
      return moved({1, 0, 0, 0, 1, -std::trunc(magnitude)});
    case AugmentOp::kRotate:
      return moved(RotationMatrix(magnitude, image.height, image.width));
    case AugmentOp::kBrightness:
      return StartBrightness(factor, image);
    case AugmentOp::kColor:
      return StartSaturation(factor, image);
    case AugmentOp::kContrast:
      return StartContrast(factor, image);
    case AugmentOp::kSharpness:
      return StartSharpness(factor, image, scratch);
    case AugmentOp::kPosterize:
      return StartPosterize(static_cast<int64_t>(magnitude), image);
    case AugmentOp::kSolarize:
      return StartSolarize(magnitude, image);
    case AugmentOp::kAutoContrast:
      return StartAutocontrast(0, 0, image);
    case AugmentOp::kEqualize:
      return StartEqualize(image);
    case AugmentOp::kInvert:
      return StartSolarize(0, image);
    case AugmentOp::kIdentity:
      break;
  }
  return StartCopy(image);
}

absl::Status CheckAugmentImage(const Argument& image) {
  if (absl::Status status = CheckImage(image, {DType::kUint8}); !status.ok()) return status;
  const absl::Status status = CheckAugmentChannels(image.type.shape[2]);
  return status.ok() ? status
                     : absl::InvalidArgumentError(absl::StrCat("image: ", status.message()));
}

absl::StatusOr<BoundRowFunction> BindAugment(const Argument& image, const Argument& method,
                                             const Argument& fill, const Argument& seed,
                                             DrawSteps draw) {
  if (absl::Status status = CheckAugmentImage(image); !status.ok()) return status;
  const auto options = ReadAffineOptions(method, fill, image.type.dtype);
  if (!options.ok()) return options.status();
  const AugmentSteps steps(*options, std::move(draw));
  return BindDrawn(image.type, seed,
                   [steps](Draws& draws, const RowValue& row, Arena& scratch, RowOutput& out) {
                     return steps.Run(draws, row, scratch, out);
                   });
}

}  // namespace penstock::expr
