// What image functions refuse: in a spec when it is compiled, in a record when it is read.
#include <string>

#include "absl/strings/str_cat.h"
#include "base/row_identity.h"
#include "server/expr/program.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

absl::StatusOr<std::unique_ptr<expr::Program>> Compile(const TensorType& image,
                                                       const std::string& text) {
  const Signature signature = {{"x", image}, {"s", {DType::kString, {}}}};
  expr::MapSource map;
  map.stage = "map";
  map.outs = {"y = " + text};
  return expr::Compile(signature, {&map, 1});
}

// Runs `text` over one uint8 image of zeros whose sizes the program does not know.
absl::Status Run(const std::string& text, int64_t height, int64_t width, int64_t channels) {
  const auto program = Compile({DType::kUint8, {kUnknownSize, kUnknownSize, kUnknownSize}}, text);
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  const std::vector<uint8_t> bytes(static_cast<size_t>(height * width * channels) + 64);
  const RowBytes row{bytes.data(), bytes.size() - 64};
  const int64_t dims[] = {height, width, channels};
  RowIdentity identity;
  Column columns[3];
  columns[0].rows = &row;
  columns[0].dims = dims;
  columns[1].rows = &row;
  columns[2] = {reinterpret_cast<uint8_t*>(&identity), sizeof(identity)};
  std::vector<uint8_t> memory(4096);
  Column out;
  out.data = memory.data();
  Arena arena;
  const size_t num_columns = (*program)->draws() ? 3 : 2;
  return (*program)->Run(1, {columns, num_columns}, {&out, 1}, arena).status;
}

TEST_CASE("Image functions: arguments that are refused") {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"central_crop(x, 0)", "central_fraction: expected a constant above 0 and up to 1"},
      {"central_crop(x, 1.5)", "central_fraction: expected a constant above 0 and up to 1"},
      {"central_crop(s, 0.5)", "image: expected numbers of shape (height, width, channels), found"},
      {"central_crop(x, x)", "central_fraction: expected a finite number as a constant"},
      {"flip_left_right(stack(x, x, axis=-4))", "each is given by itself, image[0], and stack"},
      {"rot90(x, 1.5)", "k: expected an integer constant"},
      {"encode_jpeg(x, 101)", "quality: expected an integer constant of 0 to 100"},
      {"encode_jpeg(float32(x))", "image: expected uint8 of shape"},
      {"encode_jpeg(x[..., :2])", "image: expected 1 or 3 channels, found 2"},
      {"encode_png(x, 10)", "compression: expected an integer constant of -1 to 9"},
      {"encode_png(int32(x))", "image: expected uint8, uint16 of shape"},
      {"adjust_jpeg_quality(x, -1)", "jpeg_quality: expected an integer constant of 0 to 100"},
      {"random_jpeg_quality(x, 50, 50)", "min_jpeg_quality: expected a constant below"},
      {"pad(x, [1, 2, 3])", "pad_width: expected a number, a list [before, after]"},
      {"pad(x, -1)", "pad_width: expected a number, a list [before, after]"},
      {"pad(x, 1, \"mirror\")", "mode: expected \"constant\", \"edge\""},
      {"matmul(x, [1, 2, 3])", "w: expected floats of one or two axes"},
      {"matmul(x, [0.5, 2])", "w: expected as many rows as x has columns, 3"},
      {"sum(s)", "x: expected numbers, found string"},
      {"mean(x, axis=0)", "axis: expected an integer constant of -3 to -1"},
      {"flip_left_right(x[0])", "image: expected numbers of shape (height, width, channels)"},
      {"flip_up_down(x[0])", "image: expected numbers of shape (height, width, channels)"},
      {"image_transpose(x[0])", "image: expected numbers of shape (height, width, channels)"},
      {"crop_to_bounding_box(x, 0, 0, 9, 1)", "bounding box reaches beyond the image"},
      {"crop_to_bounding_box(x, -1, 0, 1, 1)", "offset_height: expected an integer constant of 0"},
      {"pad_to_bounding_box(x, 0, 1, 8, 6)", "image does not fit into its frame: 8 x 6"},
      {"resize_with_crop_or_pad(x, 0, 1)", "target_height: expected an integer constant of 1"},
      {"resize_with_crop_or_pad(x, 1, 1048577)", "target_width: expected an integer constant of 1"},
      {"adjust_brightness(float64(x), 1)", "image: expected uint8, int8, uint16, int16, float32"},
      {"adjust_brightness(x, \"a\")", "delta: expected a finite number as a constant"},
      {"adjust_contrast(x, True)", "contrast_factor: expected a finite number as a constant"},
      {"adjust_gamma(x, -1)", "gamma: expected a constant of at least 0"},
      {"adjust_hue(x, 1.1)", "delta: expected a constant of -1 to 1"},
      {"adjust_hue(x[..., :2], 1)", "image: expected 3 channels, found uint8 (8, 6, 2)"},
      {"adjust_saturation(x[..., :1], 1)", "image: expected 3 channels"},
      {"rgb_to_grayscale(x[..., :1])", "image: expected 3 channels"},
      {"rgb_to_hsv(x)", "image: expected float32 of shape"},
      {"equalize(float32(x))", "image: expected uint8 of shape"},
      {"autocontrast(x, -1)", "cutoff: expected a constant of 0 to 100"},
      {"posterize(x, 9)", "bits: expected an integer constant of 0 to 8, found 9"},
      {"solarize(x, x)", "threshold: expected a finite number as a constant"},
      {"adjust_sharpness(x[0], 1)", "image: expected uint8 of shape"},
      {"rotate(x, \"left\")", "angle: expected a finite number as a constant"},
      {"rotate(x, 1, \"area\")", "method: expected \"nearest\", \"bilinear\" or \"bicubic\""},
      {"rotate(x, 1, fill=-1)", "fill: expected a value of uint8, found -1"},
      {"affine(x, [1, 0, 0, 0, 1])", "matrix: expected a list of 6 finite numbers, constants"},
      {"affine(x, 1)", "matrix: expected a list of 6 finite numbers, constants"},
      {"gaussian_blur(x, 2)", "kernel_size: expected an odd constant"},
      {"gaussian_blur(x, 3, 0)", "sigma: expected a constant above 0"},
      {"gaussian_blur(x, 13)", "image too small for a blur of 13 pixels: (8, 6, 3)"},
      {"hsv_to_rgb(x)", "image: expected float32 of shape"},
      {"per_image_standardization(x[0])", "image: expected uint8, int8, uint16, int16, float32"},
      {"convert_image_dtype(x, \"float\")", "dtype: expected uint8, int8"},
      {"convert_image_dtype(x, 3)", "dtype: expected a text in quotes"},
      {"convert_image_dtype(x, \"uint8\", 1)", "saturate: expected True or False"},
      {"convert_image_dtype(s, \"uint8\")", "image: expected uint8, int8"},
      {"normalize(x, [1, 2], 1)", "mean: expected a number, or one for each channel, found"},
      {"normalize(x, 1, [[1]])", "std: expected a number, or one for each channel, found"},
      {"normalize(x, 1, 1, \"CWH\")", "layout: expected \"HWC\" or \"CHW\""},
      {"resize(x, [2, 2], \"linear\")", "method: expected one of \"bilinear\", \"nearest\""},
      {"resize(float64(x), [2, 2])", "image: expected uint8, float32, int8, uint16, int16"},
      {"resize(x, [2, 2], antialias=1)", "antialias: expected True or False"},
      {"resize(x[:1], [1, 1], \"area\", True)", "size: expected a pixel at least of the image"},
      {"one_hot(float32(x), 3)", "indices: expected integers, found float32 (8, 6, 3)"},
      {"one_hot(x, 0)", "depth: expected an integer constant of 1"},
      {"one_hot(x, 3, 256, dtype=\"uint8\")", "on_value: expected a number that uint8 holds"},
      {"one_hot(x, 3, 1, 0.5, \"int64\")", "off_value: expected a number that int64 holds"},
      {"one_hot(x, 3, 1, 9223372036854775808.0, \"int64\")", "off_value: expected a number that"},
      {"one_hot(x, 3, dtype=\"bool\")", "dtype: expected the name of a dtype of numbers"},
      {"one_hot(x, 3, 9007199254740993, dtype=\"int32\")",
       "on_value: expected a number that int32 holds, found 9007199254740993"},
      {"color_map(x, [[0, 0, 256]])", "colors: expected numbers of 0 to 255, found 256"},
      {"color_map(x, [[0, 0, 0], [1, -1, 2]])", "colors: expected numbers of 0 to 255, found -1"},
      {"argmax(x, 0)", "axis: expected an integer constant of -3 to -1, found 0"},
      {"argmax(x == 1)", "x: expected numbers, found bool (8, 6, 3)"},
      {"cumsum(x, -4)", "axis: expected an integer constant of -3 to -1, found -4"},
      {"cumsum(3)", "x: expected an axis at least, found int64 ()"},
      {"cumprod(x, 0)", "axis: expected an integer constant of -3 to -1, found 0"},
      {"bincount(float32(x))", "x: expected integers, but for uint64, found float32"},
      {"bincount(x, 3, 2)", "maxlength: expected minlength, 3, at least, found 2"},
      {"bincount(x, 3, axis=-1)", "axis: expected -1, the last one, with as large a maxlength"},
      {"bincount(x, weights=x[0])", "weights: expected a number for each of uint8 ("},
      {"resize_with_pad(x, 0, 2)", "target_height: expected an integer constant of 1"},
      {"resize_with_pad(x, 2, 2, \"\")", "method: expected one of"},
  };
  for (const Case& test : cases) {
    CAPTURE(test.text);
    const auto program = Compile({DType::kUint8, {8, 6, 3}}, test.text);
    CHECK(program.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(program.status().message()), Catch::Contains(test.message));
  }
}

TEST_CASE("Image functions: images that are refused when they come") {
  struct Case {
    const char* text;
    int64_t height, width, channels;
    const char* message;
  };
  const Case cases[] = {
      {"crop_to_bounding_box(x, 2, 0, 3, 2)", 4, 9, 3,
       "bounding box reaches beyond the image: rows 2 to 5 and columns 0 to 2 of 4 x 9"},
      {"pad_to_bounding_box(x, 2, 0, 5, 9)", 4, 9, 3,
       "image does not fit into its frame: 4 x 9 at row 2 and column 0 of 5 x 9"},
      {"resize_with_crop_or_pad(x, 1048576, 1048576)", 4, 9, 3, "result larger than limit"},
      {"pad_to_bounding_box(x, 0, 0, 1048576, 1048576)", 4, 9, 3, "result larger than limit"},
      {"resize(x, [1048576, 1048576])", 4, 9, 3, "result larger than limit"},
      {"resize_with_pad(x, 1048576, 1048576)", 4, 9, 3, "result larger than limit"},
      {"resize(x, [2, 2], \"lanczos5\", False, True)", 1, 1048577, 1,
       "image larger than limit: (1, 1048577, 1) > 1048576 pixels a side"},
      {"resize(x, [2, 2], \"area\")", 0, 9, 3, "image without pixels: (0, 9, 3)"},
      {"resize(x, [2, 2], \"lanczos3\", True)", 4, 0, 3, "image without pixels: (4, 0, 3)"},
      {"resize(x, [2, 2], \"nearest\", True)", 1, 9, 3, "resized image without pixels: 0 x 2"},
      {"resize(x, [1, 262144], like=\"pil\")", 4096, 1, 1, "4096 x 262144 x 1"},
      {"resize(x, [1, 262144], like=\"cv2\")", 4096, 1, 1, "4096 x 262144 x 1"},
      {"resize(x, [1, 262144], \"area\")", 64, 1, 17, "64 x 262144 x 17"},
      {"random_resized_crop(x, [1, 262144], like=\"pil\")", 4096, 1, 1, "4096 x 262144 x 1"},
      {"autocontrast(x)", 1, 1, 1025, "image of more channels than the limit: 1025 > 1024"},
      {"equalize(x)", 1, 1, 1025, "image of more channels than the limit: 1025 > 1024"},
      {"resize_with_pad(x, 4, 4)", 1, 9, 3, "resized image without pixels: 0 x 4"},
      {"argmax(x)", 4, 9, 0, "argmax of an axis without elements: (4, 9, 0)"},
      {"one_hot(x, 1048576)", 40, 50, 1, "result larger than limit"},
      {"encode_jpeg(x)", 0, 9, 3, "an image that JPEG has no form for"},
      {"encode_jpeg(x)", 4, 9, 4, "an image that JPEG has no form for"},
      {"encode_png(x)", 4, 9, 5, "an image that PNG has no form for"},
      {"adjust_jpeg_quality(x, 50)", 4, 9, 2, "an image that JPEG has no form for"},
      {"pad(x, 1, \"edge\")", 4, 0, 3, "nothing to pad with: a tensor of shape (4, 0, 3)"},
      {"pad(x, 1000000)", 4, 9, 3, "padded tensor larger than limit"},
      {"min(x)", 4, 9, 0, "the least or greatest of no elements: (4, 9, 0)"},
      {"matmul(x, [0.5, 1.5, 2.5])", 4, 9, 2, "matmul of other sizes than w has"},
      {"adjust_hue(x, 0.5)", 4, 9, 1, "image of another number of channels than 3: 1"},
      {"adjust_saturation(x, 0.5)", 4, 9, 4, "image of another number of channels than 3: 4"},
      {"rgb_to_grayscale(x)", 4, 9, 0, "image of another number of channels than 3: 0"},
      {"rgb_to_hsv(float32(x))", 4, 9, 2, "image of another number of channels than 3: 2"},
      {"hsv_to_rgb(float32(x))", 4, 9, 2, "image of another number of channels than 3: 2"},
      {"normalize(x, [1, 2, 3], 1)", 4, 9, 1,
       "image of another number of channels than mean and std: 1 and 3"},
  };
  for (const Case& test : cases) {
    CAPTURE(test.text);
    const absl::Status status = Run(test.text, test.height, test.width, test.channels);
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(status.message()), Catch::Contains(test.message));
  }
}

TEST_CASE("pad: only a constant extends an axis without elements, whatever the result has") {
  for (const char* const mode : {"edge", "reflect", "symmetric", "wrap"}) {
    CAPTURE(mode);
    const auto pad = [&](const char* widths) {
      return absl::StrCat("pad(x, ", widths, ", \"", mode, "\")");
    };
    for (const char* const widths :
         {"[[1, 0], [0, 0], [0, 0]]", "[[0, 3], [0, 0], [0, 0]]", "[[0, 0], [0, 1], [0, 0]]"}) {
      CAPTURE(widths);
      // The other axis has no margin, so that the result has no elements either.
      const absl::Status status = Run(pad(widths), 0, 0, 3);
      CHECK(status.code() == absl::StatusCode::kDataLoss);
      CHECK_THAT(std::string(status.message()),
                 Catch::Contains("nothing to pad with: a tensor of shape (0, 0, 3)"));
    }
    CHECK(Run(pad("[[0, 0], [2, 1], [1, 1]]"), 0, 5, 3).ok());
    CHECK(Run(pad("[[2, 1], [0, 0], [0, 1]]"), 1, 0, 2).ok());
  }
  CHECK(Run("pad(x, 1)", 0, 0, 0).ok());
}

TEST_CASE("pad: a tensor without elements is as large as others may be") {
  constexpr int64_t kMost = int64_t{1} << 28;
  const std::string text = "pad(x, [[0, 0], [1, 1], [0, 0]], \"wrap\")";
  CHECK(Run(text, 0, kMost - 2, 1).ok());
  const absl::Status status = Run(text, 0, kMost - 1, 1);
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("padded tensor larger than limit: (0, 268435457, 1)"));
}

TEST_CASE("Image functions: images without pixels") {
  for (const char* text :
       {"central_crop(x, 0.5)", "flip_left_right(x)", "flip_up_down(x)", "rot90(x)",
        "image_transpose(x)", "adjust_brightness(x, 0.5)", "adjust_contrast(x, 2)",
        "adjust_gamma(x, 2)", "per_image_standardization(x)", "normalize(x, 1, 2, \"CHW\")",
        "convert_image_dtype(x, \"float32\")", "one_hot(x, 3)", "cumsum(x)", "cumsum(x, -3)"}) {
    CAPTURE(text);
    CHECK(Run(text, 0, 5, 3).ok());
    CHECK(Run(text, 5, 0, 3).ok());
    CHECK(Run(text, 5, 3, 0).ok());
  }
}

}  // namespace
}  // namespace penstock::testing
