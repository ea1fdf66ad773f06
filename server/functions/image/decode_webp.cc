#include <memory>

#include "server/codec/webp.h"
#include "server/expr/arguments.h"
#include "server/image/image_contents.h"

namespace penstock::expr {
namespace {

class DecodeWebp final : public RowKernel {
 public:
  explicit DecodeWebp(int channels) : channels_(channels) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    return DecodeFrames<WebpDecoder>(arguments[0], WebpOptions{.channels = channels_}, out);
  }

 private:
  const int channels_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = CheckContents(arguments[0]); !status.ok()) return status;
  int channels = 0;
  if (absl::Status status = ReadColorChannels(arguments[1], &channels); !status.ok()) return status;
  BoundRowFunction bound;
  bound.type = {
      DType::kUint8,
      {kUnknownSize, kUnknownSize, kUnknownSize, channels != 0 ? channels : kUnknownSize}};
  bound.kernel = std::make_shared<DecodeWebp>(channels);
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "decode_webp",
    .signature = "decode_webp(contents, channels=0)",
    .doc =
        "Decodes a WebP image to uint8 of shape (frames, height, width, channels), as "
        "tf.io.decode_webp does.\n"
        "\n"
        "contents: a string scalar, the bytes of the file.\n"
        "channels: 3 or 4, as many as the image has; or 0: either.\n"
        "\n"
        "A still image is one frame. Each frame of an animation is the whole canvas, which is "
        "transparent where nothing was drawn; one\n"
        "without alpha has 3 channels (TensorFlow writes four into the place of three). An image "
        "of another number of channels, one that\n"
        "is cut or damaged, and more than 67,108,864 pixels in all, 16,384 a side or 16,384 "
        "frames, are "
        "errors of the record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
