// adjust_jpeg_quality and random_jpeg_quality: what a JPEG file leaves of an image.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codec/jpeg.h"
#include "server/codec/jpeg_writer.h"
#include "server/expr/arguments.h"
#include "server/image/drawn.h"

namespace penstock::expr {
namespace {

absl::Status ThroughJpeg(int quality, const RowValue& image, RowOutput& out) {
  JpegWriteOptions options;
  options.quality = quality;
  const absl::StatusOr<std::string> file =
      EncodeJpeg(image.data, image.shape[0], image.shape[1], image.shape[2], options);
  if (!file.ok()) return absl::DataLossError(file.status().message());
  JpegDecoder decoder;
  const auto shape = decoder.Start(reinterpret_cast<const uint8_t*>(file->data()), file->size(),
                                   JpegOptions{.channels = static_cast<int>(image.shape[2])});
  if (!shape.ok()) return shape.status();
  if (const absl::Status status = decoder.Decode(out.Reserve(shape->bytes())); !status.ok()) {
    return status;
  }
  out.Commit();
  return absl::OkStatus();
}

class AdjustJpegQuality final : public RowKernel {
 public:
  AdjustJpegQuality(int quality, bool sets_shape) : quality_(quality), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    if (sets_shape_) out.SetShape(arguments[0].shape);
    return ThroughJpeg(quality_, arguments[0], out);
  }

 private:
  const int quality_;
  const bool sets_shape_;
};

absl::Status CheckKnown(const Argument& image) {
  if (const absl::Status status = CheckImage(image, {DType::kUint8}); !status.ok()) return status;
  const Shape& shape = image.type.shape;
  // More could be encoded, but not decoded again.
  const bool fits = shape[0] != 0 && shape[1] != 0 && shape[0] <= kJpegSideMax &&
                    shape[1] <= kJpegSideMax &&
                    (shape[2] == 1 || shape[2] == 3 || shape[2] == kUnknownSize);
  if (fits) return absl::OkStatus();
  return WrongArgument(
      "image", absl::StrCat("1 to ", kJpegSideMax, " pixels a side and 1 or 3 channels, found ",
                            TypeToString(image.type)));
}

absl::StatusOr<BoundRowFunction> BindAdjust(absl::Span<const Argument> arguments) {
  int64_t quality = 95;
  if (const absl::Status status = FirstError(
          {CheckKnown(arguments[0]), ReadConstant(arguments[1], "jpeg_quality", 0, 100, &quality)});
      !status.ok()) {
    return status;
  }
  BoundRowFunction bound;
  bound.type = arguments[0].type;
  bound.kernel = std::make_shared<AdjustJpegQuality>(static_cast<int>(quality),
                                                     !NumElements(bound.type.shape).has_value());
  bound.tensor_arguments = {0};
  return bound;
}

absl::StatusOr<BoundRowFunction> BindRandom(absl::Span<const Argument> arguments) {
  int64_t least = 0, most = 100;
  if (const absl::Status status = FirstError(
          {CheckKnown(arguments[0]), ReadConstant(arguments[1], "min_jpeg_quality", 0, 100, &least),
           ReadConstant(arguments[2], "max_jpeg_quality", 0, 100, &most)});
      !status.ok()) {
    return status;
  }
  if (least >= most) {
    return WrongArgument("min_jpeg_quality", "a constant below max_jpeg_quality");
  }
  return BindDrawn(arguments[0].type, arguments[3],
                   [least, most](Draws& draws, const RowValue& image, Arena&, RowOutput& out) {
                     const auto range = static_cast<uint64_t>(most - least);
                     const int64_t quality = least + static_cast<int64_t>(draws.Below(range));
                     draws.Note("quality", static_cast<double>(quality));
                     return ThroughJpeg(static_cast<int>(quality), image, out);
                   });
}

const RowFunctionRegistration kAdjust({
    .name = "adjust_jpeg_quality",
    .signature = "adjust_jpeg_quality(image, jpeg_quality)",
    .doc = "An image as it comes back from a JPEG file of some quality, as "
           "tf.image.adjust_jpeg_quality makes it.\n"
           "\n"
           "image: uint8 of shape (height, width, channels), 1 or 3 channels.\n"
           "jpeg_quality: 0 to 100, a constant.\n"
           "\n"
           "TensorFlow's bytes.",
    .bind = BindAdjust,
});

const RowFunctionRegistration kRandom({
    .name = "random_jpeg_quality",
    .signature = "random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed=None)",
    .doc = "adjust_jpeg_quality by a quality that is drawn, as tf.image.random_jpeg_quality does.\n"
           "\n"
           "image: uint8 of shape (height, width, channels), 1 or 3 channels.\n"
           "min_jpeg_quality, max_jpeg_quality: constants of 0 to 100; the quality is drawn evenly "
           "from the first up to, but not including, the second.\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
           "record, on nothing else.\n"
           "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = BindRandom,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
