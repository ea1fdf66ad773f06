#include "server/image/resize_method.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

template <typename T>
void Widen(const uint8_t* bytes, size_t count, float* out) {
  const auto* const in = reinterpret_cast<const T*>(bytes);
  InPieces(count, [in, out](size_t first, size_t some) {
    for (size_t i = first; i < first + some; ++i) out[i] = static_cast<float>(in[i]);
  });
}

struct NamedMethod {
  std::string_view name;
  ResizeMethod plain;
  ResizeMethod antialiased;
};

constexpr NamedMethod kMethods[] = {
    {"bilinear", {ResizeBilinear, false, true}, {ResizeTriangle}},
    {"nearest", {ResizeNearest, true, true}, {ResizeNearest, true, true}},
    {"bicubic", {ResizeBicubic}, {ResizeCubic}},
    {"area",
     {.run = ResizeArea, .lines_max = kAreaLinesMax},
     {.run = ResizeArea, .lines_max = kAreaLinesMax}},
    {"lanczos3", {ResizeLanczos3<false>}, {ResizeLanczos3<true>}},
    {"lanczos5", {ResizeLanczos5<false>}, {ResizeLanczos5<true>}},
    {"gaussian", {ResizeGaussian<false>}, {ResizeGaussian<true>}},
    {"mitchellcubic", {ResizeMitchell<false>}, {ResizeMitchell<true>}},
};

}  // namespace

absl::StatusOr<ResizeMethod> FindResizeMethod(std::string_view method, bool antialias,
                                              std::string_view like) {
  if (like == "pil" || like == "cv2") {
    ResizeMethod found{like == "pil" ? FindPillowMethod(method) : FindOpenCvMethod(method)};
    found.bytes_or_floats = true;
    found.lines_max = INT64_MAX;
    if (found.run != nullptr) return found;
    return WrongArgument("method",
                         absl::StrCat("one that \"", std::string(like),
                                      "\" has: \"nearest\", \"bilinear\", \"bicubic\", \"area\"",
                                      like == "pil" ? ", \"lanczos3\"" : "", ", found \"",
                                      std::string(method), "\""));
  }
  if (like != "tf") return WrongArgument("like", "\"tf\", \"pil\" or \"cv2\"");
  std::string names;
  for (const NamedMethod& known : kMethods) {
    if (known.name == method) return antialias ? known.antialiased : known.plain;
    absl::StrAppend(&names, names.empty() ? "\"" : ", \"", std::string(known.name), "\"");
  }
  return WrongArgument("method",
                       absl::StrCat("one of ", names, ", found \"", std::string(method), "\""));
}

absl::Status CheckResizeImage(const Argument& image, const ResizeMethod& method) {
  if (method.keeps_dtype) return CheckImage(image);
  if (method.bytes_or_floats) return CheckImage(image, {DType::kUint8, DType::kFloat32});
  return CheckImage(image,
                    {DType::kUint8, DType::kFloat32, DType::kInt8, DType::kUint16, DType::kInt16});
}

DType ResizedDType(DType image, const ResizeMethod& method) {
  return method.keeps_dtype || method.bytes_or_floats ? image : DType::kFloat32;
}

absl::Status CheckResize(const Shape& image, int64_t height, int64_t width) {
  if (image[0] < 1 || image[1] < 1 || image[2] < 1) {
    return absl::DataLossError(absl::StrCat("image without pixels: ", ShapeToString(image)));
  }
  // The weights of a method take memory by the side, not by the pixel.
  if (image[0] > kImageSideMax || image[1] > kImageSideMax) {
    return absl::DataLossError(absl::StrCat("image larger than limit: ", ShapeToString(image),
                                            " > ", kImageSideMax, " pixels a side"));
  }
  if (height < 1 || width < 1) {
    return absl::DataLossError(absl::StrCat("resized image without pixels: ", height, " x ", width,
                                            " from ", ShapeToString(image)));
  }
  return CheckElements(height, width, image[2]);
}

absl::Status CheckResizeLines(const ResizeMethod& method, const Shape& image, int64_t width) {
  return CheckElements(std::min(method.lines_max, image[0]), width, image[2]);
}

void RunResize(const ResizeMethod& method, DType dtype, const RowValue& image, int64_t height,
               int64_t width, Arena& scratch, RowOutput& out) {
  if (method.keeps_dtype || method.bytes_or_floats || dtype == DType::kFloat32 ||
      (method.takes_uint8 && dtype == DType::kUint8)) {
    method.run(dtype, image, height, width, scratch, out);
    return;
  }
  const size_t count = image.bytes / DTypeSize(dtype);
  auto* const values = scratch.AllocateArray<float>(count);
  switch (dtype) {
    case DType::kUint8:
      Widen<uint8_t>(image.data, count, values);
      break;
    case DType::kInt8:
      Widen<int8_t>(image.data, count, values);
      break;
    case DType::kUint16:
      Widen<uint16_t>(image.data, count, values);
      break;
    default:
      Widen<int16_t>(image.data, count, values);
  }
  RowValue wide = image;
  wide.data = reinterpret_cast<const uint8_t*>(values);
  wide.bytes = count * sizeof(float);
  method.run(DType::kFloat32, wide, height, width, scratch, out);
}

}  // namespace penstock::expr
