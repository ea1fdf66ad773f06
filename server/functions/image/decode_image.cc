#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/codec/bmp.h"
#include "server/codec/gif.h"
#include "server/codec/jpeg.h"
#include "server/codec/png.h"
#include "server/codec/webp.h"
#include "server/expr/arguments.h"
#include "server/image/image_contents.h"

namespace penstock::expr {
namespace {

class DecodeImage final : public RowKernel {
 public:
  DecodeImage(int channels, bool expand_animations)
      : channels_(channels), expand_animations_(expand_animations) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& contents = arguments[0];
    if (contents.bytes >= 3 && contents.data[0] == 0xff && contents.data[1] == 0xd8 &&
        contents.data[2] == 0xff) {
      if (channels_ == 4) return absl::DataLossError("JPEG image cannot be decoded to 4 channels");
      return DecodeContents<JpegDecoder>(contents, JpegOptions{.channels = channels_}, out);
    }
    if (contents.bytes >= 3 && contents.data[0] == 0x89 && contents.data[1] == 'P' &&
        contents.data[2] == 'N') {
      return DecodeContents<PngDecoder>(contents, PngOptions{.channels = channels_}, out);
    }
    if (contents.bytes >= 2 && contents.data[0] == 'B' && contents.data[1] == 'M') {
      if (channels_ == 1) return absl::DataLossError("BMP image cannot be decoded to 1 channel");
      return DecodeContents<BmpDecoder>(contents, BmpOptions{.channels = channels_}, out);
    }
    if (contents.bytes >= 4 && std::memcmp(contents.data, "GIF8", 4) == 0) {
      if (channels_ == 1 || channels_ == 4) {
        return absl::DataLossError(
            absl::StrCat("GIF image cannot be decoded to ", channels_, " channels"));
      }
      if (expand_animations_) return HasFrames("GIF", "gif");
      return DecodeContents<GifDecoder>(contents, GifOptions{.first_frame_only = true}, out);
    }
    if (IsWebp(contents.data, contents.bytes)) {
      if (channels_ == 1) return absl::DataLossError("WebP image cannot be decoded to 1 channel");
      if (expand_animations_) return HasFrames("WebP", "webp");
      return DecodeContents<WebpDecoder>(
          contents, WebpOptions{.channels = channels_, .first_frame_only = true}, out);
    }
    return absl::DataLossError(absl::StrCat(
        "no JPEG, PNG, BMP, GIF or WebP image by its first bytes: ", contents.bytes, " bytes"));
  }

 private:
  static absl::Status HasFrames(const char* format, const char* name) {
    return absl::DataLossError(absl::StrCat(
        format,
        " image has an axis of frames, which other formats have not: expand_animations=False gives "
        "its first frame, decode_",
        name, " all"));
  }

  const int channels_;
  const bool expand_animations_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = CheckContents(arguments[0]); !status.ok()) return status;
  int64_t channels = 0;
  if (const absl::Status status = ReadConstant(arguments[1], "channels", 0, 4, &channels);
      !status.ok()) {
    return status;
  }
  bool expand_animations = true;
  if (const absl::Status status =
          ReadConstant(arguments[2], "expand_animations", &expand_animations);
      !status.ok()) {
    return status;
  }
  if (channels == 2) return WrongArgument("channels", "0, 1, 3 or 4 as a constant");
  BoundRowFunction bound;
  bound.type = {DType::kUint8,
                {kUnknownSize, kUnknownSize, channels != 0 ? channels : kUnknownSize}};
  bound.kernel = std::make_shared<DecodeImage>(static_cast<int>(channels), expand_animations);
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "decode_image",
    .signature = "decode_image(contents, channels=0, expand_animations=True)",
    .doc =
        "Decodes a JPEG, PNG, BMP, GIF or WebP image, as its first bytes tell, to uint8 of shape "
        "(height, width, channels), as\n"
        "tf.io.decode_image does.\n"
        "\n"
        "contents: a string scalar, the bytes of the file.\n"
        "channels: 1 (not of BMP, GIF and WebP), 3, 4 (not of JPEG and GIF), or 0: as many as the "
        "image has. WebP images are of as many as\n"
        "asked for, or refused.\n"
        "expand_animations: a constant. False: the first frame of a GIF or WebP image. True: these "
        "are refused, since they have an axis more.\n"
        "\n"
        "The bytes of decode_jpeg, decode_png, decode_bmp, decode_gif and decode_webp, which are "
        "TensorFlow's. What those refuse is an error of\n"
        "its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
