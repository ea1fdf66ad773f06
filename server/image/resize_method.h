// The methods of `resize`, by TensorFlow's convention and order of operations.
//
// Threads:  safe from any thread.
// Limits:   images of at least one pixel; sides up to kImageSideMax; see CheckResize().
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "server/expr/function.h"
#include "server/image/window.h"

namespace penstock::expr {

// Writes `image`, uint8 or float32, as float32 of `height` x `width` pixels (nearest: in its own
// dtype). The shape has been set, the sizes have been checked.
using ResizeFunction = void (*)(DType dtype, const RowValue& image, int64_t height, int64_t width,
                                Arena& scratch, RowOutput& out);

// "area" holds so many lines of the result, of which a row of it is the sum, at a time.
inline constexpr int64_t kAreaLinesMax = 64;

struct ResizeMethod {
  ResizeFunction run = nullptr;
  bool keeps_dtype = false;      // nearest: pixels are copied, of whatever dtype
  bool takes_uint8 = false;      // else the image is made float32 before
  bool bytes_or_floats = false;  // takes uint8 and float32 only, and keeps them
  int64_t lines_max = 0;         // that are kept between its passes, as wide as the result
};

// `like`: whose convention, "tf", "pil" or "cv2". An error names `method` or `like`.
absl::StatusOr<ResizeMethod> FindResizeMethod(std::string_view method, bool antialias,
                                              std::string_view like = "tf");
// Null where there is none (resize_like.cc).
ResizeFunction FindPillowMethod(std::string_view method);
ResizeFunction FindOpenCvMethod(std::string_view method);

// What an image may be for a method, and the result's dtype.
absl::Status CheckResizeImage(const Argument& image, const ResizeMethod& method);
DType ResizedDType(DType image, const ResizeMethod& method);

// An error of the image: without pixels, or a result without or with too many.
absl::Status CheckResize(const Shape& image, int64_t height, int64_t width);

// The same: one of which a method keeps too much between its passes.
absl::Status CheckResizeLines(const ResizeMethod& method, const Shape& image, int64_t width);

// Resizes an image of any dtype that CheckResizeImage() lets pass. REQUIRES: CheckResize() and
// CheckResizeLines().
void RunResize(const ResizeMethod& method, DType dtype, const RowValue& image, int64_t height,
               int64_t width, Arena& scratch, RowOutput& out);

// A part of what ResizeBilinear() writes, of one pixel at least. `window` lies inside.
void ResizeBilinearWindow(DType dtype, const RowValue& image, int64_t height, int64_t width,
                          const Window& window, Arena& scratch, RowOutput& out);
// The same of the image of uint8 and this shape that `reader` gives, whole: of one that has rows
// only some are there at a time, so that a large image leaves the nearer caches to other things. An
// error is the reader's; what was written then means nothing.
absl::Status ResizeBilinearRead(PartReader& reader, const Shape& image, int64_t height,
                                int64_t width, Arena& scratch, RowOutput& out);
void ResizeBilinear(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
void ResizeNearest(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
void ResizeBicubic(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
void ResizeArea(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
// Weighted sums over spans of pixels; the first two with antialiasing, the others with or without.
void ResizeTriangle(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
void ResizeCubic(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
template <bool antialias>
void ResizeLanczos3(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
template <bool antialias>
void ResizeLanczos5(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
template <bool antialias>
void ResizeGaussian(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
template <bool antialias>
void ResizeMitchell(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);

}  // namespace penstock::expr
