#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/codec/jpeg.h"
#include "server/codec/png.h"
#include "server/expr/data_integers.h"
#include "server/expr/function.h"
#include "server/expr/row_kernel.h"
#include "server/image/image_contents.h"

namespace penstock::expr {
namespace {

// Some photos of well-known datasets are PNGs, whatever they are called, and TensorFlow decodes
// them.
bool IsPng(const RowValue& contents) {
  constexpr char kSignature[] = "\x89PNG\r\n\x1a\n";
  constexpr size_t kBytes = sizeof(kSignature) - 1;
  return contents.bytes >= kBytes && std::memcmp(contents.data, kSignature, kBytes) == 0;
}

class JpegPart final : public PartReader {
 public:
  explicit JpegPart(const JpegOptions& options) : options_(options) {}

  absl::StatusOr<Shape> Start(absl::Span<const RowValue> arguments) override {
    is_png_ = IsPng(arguments[0]);
    if (is_png_) return StartPng(arguments[0]);
    const absl::StatusOr<JpegShape> shape =
        decoder_.Start(arguments[0].data, arguments[0].bytes, options_);
    if (!shape.ok()) return shape.status();
    return Shape{shape->height, shape->width, shape->channels};
  }

  absl::Status Read(int64_t top, int64_t left, int64_t height, int64_t width,
                    uint8_t* pixels) override {
    if (is_png_) {
      const auto pixel_bytes = static_cast<size_t>(png_shape_[2]);
      const size_t row_bytes = static_cast<size_t>(width) * pixel_bytes;
      for (int64_t y = 0; y < height; ++y) {
        const auto from = static_cast<size_t>((top + y) * png_shape_[1] + left) * pixel_bytes;
        std::memcpy(pixels + static_cast<size_t>(y) * row_bytes, &png_[from], row_bytes);
      }
      return absl::OkStatus();
    }
    return decoder_.DecodeWindow({static_cast<int>(top), static_cast<int>(left),
                                  static_cast<int>(height), static_cast<int>(width)},
                                 pixels);
  }

  bool has_rows() const override { return !is_png_ && decoder_.has_rows(); }
  absl::Status ReadRows(int64_t count, uint8_t* pixels) override {
    return decoder_.ReadRows(static_cast<int>(count), pixels);
  }

 private:
  // Decodes the whole.
  absl::StatusOr<Shape> StartPng(const RowValue& contents) {
    PngDecoder decoder;
    const absl::StatusOr<PngShape> shape =
        decoder.Start(contents.data, contents.bytes, {.channels = options_.channels});
    if (!shape.ok()) return shape.status();
    png_.resize(shape->bytes());
    if (const absl::Status status = decoder.Decode(png_.data()); !status.ok()) return status;
    png_shape_ = {shape->height, shape->width, shape->channels};
    return png_shape_;
  }

  const JpegOptions options_;
  JpegDecoder decoder_;
  bool is_png_ = false;
  std::vector<uint8_t> png_;
  Shape png_shape_;
};

class DecodeJpeg final : public RowKernel {
 public:
  // `window`: [top, left, height, width]; nothing for the whole image.
  DecodeJpeg(const JpegOptions& options, std::optional<DataIntegers> window, bool sets_shape)
      : options_(options), window_(std::move(window)), sets_shape_(sets_shape) {}

  std::unique_ptr<PartReader> NewPartReader() const override {
    // What is cut out here is no part of the whole to whoever asks.
    return window_ ? nullptr : std::make_unique<JpegPart>(options_);
  }

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    if (!window_ && IsPng(arguments[0]))
      return DecodeContents<PngDecoder>(arguments[0], PngOptions{.channels = options_.channels},
                                        out);
    JpegDecoder decoder;
    const absl::StatusOr<JpegShape> shape =
        decoder.Start(arguments[0].data, arguments[0].bytes, options_);
    if (!shape.ok()) return shape.status();
    if (window_) {
      IntegersRead window;
      if (absl::Status status = window_->Read(arguments.subspan(1), &window); !status.ok())
        return status;
      return RunWindow({static_cast<int>(window[0]), static_cast<int>(window[1]),
                        static_cast<int>(window[2]), static_cast<int>(window[3])},
                       *shape, decoder, out);
    }
    out.SetShape({shape->height, shape->width, shape->channels});
    uint8_t* const pixels = out.Reserve(shape->bytes());
    if (const absl::Status status = decoder.Decode(pixels); !status.ok()) return status;
    out.Commit();
    return absl::OkStatus();
  }

 private:
  absl::Status RunWindow(const JpegWindow& window, const JpegShape& shape, JpegDecoder& decoder,
                         RowOutput& out) const {
    if (window.top > shape.height - window.height || window.left > shape.width - window.width ||
        window.height < 1 || window.width < 1) {
      return absl::DataLossError(absl::StrCat(
          "crop window outside of the image: ", window.height, " x ", window.width, " at ",
          window.top, ", ", window.left, " of ", shape.height, " x ", shape.width));
    }
    const JpegShape part{window.height, window.width, shape.channels};
    if (sets_shape_) out.SetShape({part.height, part.width, part.channels});
    if (const absl::Status status = decoder.DecodeWindow(window, out.Reserve(part.bytes()));
        !status.ok()) {
      return status;
    }
    out.Commit();
    return absl::OkStatus();
  }

  const JpegOptions options_;
  const std::optional<DataIntegers> window_;
  const bool sets_shape_;
};

absl::Status WrongArgument(const char* name, const char* expected) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": expected ", expected));
}

// The value of a literal argument; left alone when it is absent.
template <typename T>
absl::Status ReadLiteral(const Argument& argument, const char* name, const char* expected,
                         T* value) {
  if (!argument.given) return absl::OkStatus();
  const T* const given = argument.literal == nullptr ? nullptr : std::get_if<T>(argument.literal);
  if (given == nullptr) return WrongArgument(name, expected);
  *value = *given;
  return absl::OkStatus();
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& contents = arguments[0].type;
  if (contents.dtype != DType::kString || !contents.shape.empty() || arguments[0].literal) {
    return absl::InvalidArgumentError(
        absl::StrCat("contents: expected a string scalar, found ", TypeToString(contents)));
  }
  int64_t channels = 0, ratio = 1;
  bool fancy_upscaling = true, recover = false, upright = false;
  std::string dct_method;
  constexpr char kChannels[] = "0, 1 or 3 as a constant";
  constexpr char kRatio[] = "1, 2, 4 or 8 as a constant";
  constexpr char kFancy[] = "True or False";
  constexpr char kDct[] = "\"\", \"INTEGER_FAST\" or \"INTEGER_ACCURATE\"";
  for (const absl::Status& status :
       {ReadLiteral(arguments[1], "channels", kChannels, &channels),
        ReadLiteral(arguments[2], "ratio", kRatio, &ratio),
        ReadLiteral(arguments[3], "fancy_upscaling", kFancy, &fancy_upscaling),
        ReadLiteral(arguments[4], "dct_method", kDct, &dct_method),
        ReadLiteral(arguments[5], "try_recover_truncated", kFancy, &recover),
        ReadLiteral(arguments[7], "exif_orientation", kFancy, &upright)}) {
    if (!status.ok()) return status;
  }
  if (channels != 0 && channels != 1 && channels != 3) return WrongArgument("channels", kChannels);
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) return WrongArgument("ratio", kRatio);
  if (!dct_method.empty() && dct_method != "INTEGER_FAST" && dct_method != "INTEGER_ACCURATE") {
    return WrongArgument("dct_method", kDct);
  }
  std::optional<DataIntegers> window;
  if (arguments[6].given) {
    window.emplace();
    absl::Status status = window->AddList(arguments, 6, "crop_window", "[top, left, height, width]",
                                          4, 0, kJpegSideMax);
    if (!status.ok()) return status;
    if (window->constant(2) == 0 || window->constant(3) == 0)
      return WrongArgument("crop_window", "a height and a width of 1 at least");
  }
  JpegOptions options;
  options.recover_truncated = recover;
  options.upright = upright;
  options.channels = static_cast<int>(channels);
  options.ratio = static_cast<int>(ratio);
  options.fancy_upscaling = fancy_upscaling;
  options.accurate_dct = dct_method == "INTEGER_ACCURATE";
  BoundRowFunction bound;
  bound.type.dtype = DType::kUint8;
  bound.type.shape = {kUnknownSize, kUnknownSize, channels != 0 ? channels : kUnknownSize};
  bound.tensor_arguments = {0};
  if (window) {
    bound.type.shape[0] = window->size(2);
    bound.type.shape[1] = window->size(3);
    bound.tensor_arguments.insert(bound.tensor_arguments.end(), window->positions().begin(),
                                  window->positions().end());
  }
  const bool sets_shape = HasUnknownSize(bound.type.shape);
  bound.kernel = std::make_shared<DecodeJpeg>(options, std::move(window), sets_shape);
  return bound;
}

const RowFunctionRegistration kDecodeJpeg({
    .name = "decode_jpeg",
    .signature =
        "decode_jpeg(contents, channels=0, ratio=1, fancy_upscaling=True, dct_method=\"\", "
        "try_recover_truncated=False, crop_window=None, exif_orientation=False)",
    .doc = "Decodes a JPEG image to uint8 of shape (height, width, channels), as tf.io.decode_jpeg "
           "does.\n"
           "\n"
           "contents: a string scalar, the bytes of a JPEG file.\n"
           "channels: 1 (grey), 3 (RGB), or 0: as many as the image has. CMYK becomes RGB.\n"
           "ratio: 1, 2, 4 or 8: divides both sides while decoding, rounded up.\n"
           "fancy_upscaling: whether chroma is interpolated rather than repeated.\n"
           "dct_method: \"INTEGER_FAST\" (also the default) or \"INTEGER_ACCURATE\".\n"
           "try_recover_truncated: whether data that ends too early gives the image as far as it "
           "goes, and grey below, where TensorFlow has garbage.\n"
           "crop_window: [top, left, height, width], constants or integers of the data: only that "
           "part is decoded, to the pixels that it has in the whole. Of a file that is not cut, "
           "damage after the part's last row "
           "is not met, nor after a subscript of the image.\n"
           "exif_orientation: whether the image is turned upright as its EXIF data tells; else "
           "that is ignored, as TensorFlow does.\n"
           "\n"
           "The pixels are bit for bit libjpeg-turbo's. Data that is cut, is no JPEG, or has more "
           "than 16384 pixels\n"
           "a side or 64 Mi in all is an error of its record. A PNG is decoded too, as TensorFlow "
           "does: "
           "without crop_window, and\n"
           "whatever the other arguments say, with channels=0 to as many as it has.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
