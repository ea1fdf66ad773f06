#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/image/augment.h"
#include "server/image/tone.h"

namespace penstock::expr {
namespace {

// What is drawn between, unless the image stays as it is.
struct Range {
  double low = 0;
  double high = 0;
  bool changes = false;
};

// A number, which is how far from `centre` it goes to both sides, or [low, high].
absl::Status ReadJitter(const Argument& argument, std::string_view name, double centre,
                        double least, double greatest, Range* range) {
  double low = centre, high = centre;
  const bool is_list = argument.literal != nullptr &&
                       (std::holds_alternative<std::vector<int64_t>>(*argument.literal) ||
                        std::holds_alternative<std::vector<double>>(*argument.literal));
  if (is_list) {
    if (absl::Status status = ReadRange(argument, name, least, greatest, &low, &high);
        !status.ok()) {
      return status;
    }
  } else {
    double distance = 0;
    if (absl::Status status = ReadConstant(argument, name, &distance); !status.ok()) return status;
    if (distance < 0 || centre + distance > greatest) {
      return WrongArgument(name, absl::StrCat("a constant of 0 to ", greatest - centre,
                                              ", or [low, high], found ", distance));
    }
    low = std::max(centre - distance, least);
    high = centre + distance;
  }
  *range = {low, high, low != centre || high != centre};
  return absl::OkStatus();
}

enum Kind : uint8_t { kBrightness, kContrast, kSaturation, kHue, kNumKinds };
constexpr std::array<const char*, kNumKinds> kNames = {"brightness", "contrast", "saturation",
                                                       "hue"};

NextRows Start(Kind kind, double value, const ImageView& image) {
  const auto factor = static_cast<float>(value);
  switch (kind) {
    case kBrightness:
      return StartBrightness(factor, image);
    case kContrast:
      return StartContrast(factor, image);
    case kSaturation:
      return StartSaturation(factor, image);
    default:
      // torchvision's: 255ths of the circle, the fraction dropped, in a byte.
      return StartHue(static_cast<uint8_t>(static_cast<int>(value * 255)), image);
  }
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  std::array<Range, kNumKinds> ranges;
  if (const absl::Status status =
          FirstError({CheckAugmentImage(arguments[0]),
                      ReadJitter(arguments[1], kNames[0], 1, 0, 1e6, &ranges[kBrightness]),
                      ReadJitter(arguments[2], kNames[1], 1, 0, 1e6, &ranges[kContrast]),
                      ReadJitter(arguments[3], kNames[2], 1, 0, 1e6, &ranges[kSaturation]),
                      ReadJitter(arguments[4], kNames[3], 0, -0.5, 0.5, &ranges[kHue])});
      !status.ok()) {
    return status;
  }
  return BindDrawn(
      arguments[0].type, arguments[5],
      [ranges](Draws& draws, const RowValue& row, Arena& scratch, RowOutput& out) -> absl::Status {
        if (absl::Status status = CheckAugmentChannels(row.shape[2]); !status.ok()) return status;
        ImageView image = ViewOf(DType::kUint8, row);
        if (image.height == 0 || image.width == 0) return absl::OkStatus();
        // All are drawn, in the same order, so that none moves what is drawn for the others.
        std::array<Kind, kNumKinds> order = {kBrightness, kContrast, kSaturation, kHue};
        for (size_t i = order.size() - 1; i > 0; --i)
          std::swap(order[i], order[draws.Below(i + 1)]);
        std::array<double, kNumKinds> values{};
        for (size_t kind = 0; kind < values.size(); ++kind)
          values[kind] = draws.Between(ranges[kind].low, ranges[kind].high);
        for (const Kind kind : order) draws.Note(kNames[kind], values[kind]);
        const auto last = std::remove_if(order.begin(), order.end(),
                                         [&](Kind kind) { return !ranges[kind].changes; });
        if (last == order.begin()) {
          WriteRows(image, StartCopy(image), out);
          return absl::OkStatus();
        }
        // All but the last go into memory of their own.
        for (auto kind = order.begin(); kind + 1 != last; ++kind) {
          uint8_t* const pixels = scratch.Allocate(
              static_cast<size_t>(image.height * image.row_bytes()) + kRowsPadding);
          Start(*kind, values[*kind], image)(image.height, pixels);
          image.pixels = pixels;
        }
        WriteRows(image, Start(*(last - 1), values[*(last - 1)], image), out);
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kRegistration({
    .name = "color_jitter",
    .signature = "color_jitter(image, brightness=0, contrast=0, saturation=0, hue=0, seed=None)",
    .doc =
        "Brightness, contrast, saturation and hue changed by what is drawn, in a drawn order, as "
        "torchvision's ColorJitter does it to Pillow's images.\n"
        "\n"
        "image: uint8 of shape (height, width, channels), of one or three channels; the result "
        "has its type.\n"
        "brightness, contrast, saturation: the factor is drawn evenly from max(0, 1 - x) to 1 + x, "
        "or between [low, high], constants of at least 0: 0 gives black, the mean grey, the "
        "image's greys; 1 the image.\n"
        "hue: drawn evenly from -x to x, or between [low, high], constants of -0.5 to 0.5: turns "
        "of the circle.\n"
        "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
        "if it is left out.\n"
        "\n"
        "Each gives torchvision's bytes; what is left out does nothing. saturation=[0, 0] alone "
        "is Pillow's grey, convert(\"L\"), in three channels. TensorFlow's adjust_brightness, "
        "adjust_contrast and adjust_saturation are other operations.\n"
        "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
        "record, on nothing else.\n"
        "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
