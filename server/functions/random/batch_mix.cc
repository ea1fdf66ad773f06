// mixup and cutmix: every element of a batch mixed with another one of it, and their labels alike.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/expr/beta_draws.h"

namespace penstock::expr {
namespace {

// With whom each row of a batch is mixed: a drawn order of all rows.
void DrawPartners(Draws& draws, int64_t rows, int64_t* partners) {
  for (int64_t i = 0; i < rows; ++i) partners[i] = i;
  for (int64_t i = rows - 1; i > 0; --i) {
    const auto other = static_cast<int64_t>(draws.Below(static_cast<uint64_t>(i) + 1));
    std::swap(partners[i], partners[other]);
  }
}

struct Mix {
  bool cuts = false;
  double alpha = 1;
  int64_t height = 0;  // of cutmix's images
  int64_t width = 0;
  bool images = false;  // x has pixels, or labels
};

// Of one batch. Every call with the same seed draws the same, in the same order.
class MixKernel final : public RowKernel {
 public:
  MixKernel(const Mix& mix, DType dtype, bool sets_shape, DrawSource source)
      : mix_(mix), dtype_(dtype), sets_shape_(sets_shape), source_(std::move(source)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& x = arguments[0];
    Draws draws(source_, arguments[1]);
    const int64_t rows = x.shape[0];
    auto* const partners = scratch.AllocateArray<int64_t>(static_cast<size_t>(rows));
    double keep = DrawBeta(draws, mix_.alpha, mix_.alpha);
    DrawPartners(draws, rows, partners);
    Box box;
    if (mix_.cuts) {
      box = DrawBox(draws, keep);
      keep = 1 - static_cast<double>(box.height * box.width) /
                     static_cast<double>(mix_.height * mix_.width);
    }
    draws.Note("lambda", keep);
    if (sets_shape_) out.SetShape(x.shape);
    if (rows == 0) return absl::OkStatus();
    const size_t row_bytes = x.bytes / static_cast<size_t>(rows);
    for (int64_t r = 0; r < rows; ++r) {
      const uint8_t* const own = x.data + static_cast<size_t>(r) * row_bytes;
      const uint8_t* const other = x.data + static_cast<size_t>(partners[r]) * row_bytes;
      uint8_t* const to = out.Reserve(row_bytes);
      if (mix_.cuts && mix_.images) {
        Paste(own, other, row_bytes, box, to);
      } else if (dtype_ == DType::kFloat32) {
        Blend<float>(own, other, row_bytes, keep, to);
      } else {
        Blend<double>(own, other, row_bytes, keep, to);
      }
      out.Commit();
    }
    return absl::OkStatus();
  }

 private:
  struct Box {
    int64_t top = 0;
    int64_t left = 0;
    int64_t height = 0;
    int64_t width = 0;
  };

  // The paper's: sides in proportion to sqrt(1 - lambda), a centre anywhere, cut at the image's
  // edges.
  Box DrawBox(Draws& draws, double keep) const {
    const double side = std::sqrt(1 - keep);
    const auto height = static_cast<int64_t>(static_cast<double>(mix_.height) * side);
    const auto width = static_cast<int64_t>(static_cast<double>(mix_.width) * side);
    const auto y = static_cast<int64_t>(draws.Below(static_cast<uint64_t>(mix_.height)));
    const auto x = static_cast<int64_t>(draws.Below(static_cast<uint64_t>(mix_.width)));
    const int64_t top = std::max<int64_t>(y - height / 2, 0);
    const int64_t left = std::max<int64_t>(x - width / 2, 0);
    return {top, left, std::min(y + height / 2, mix_.height) - top,
            std::min(x + width / 2, mix_.width) - left};
  }

  void Paste(const uint8_t* own, const uint8_t* other, size_t row_bytes, const Box& box,
             uint8_t* to) const {
    std::memcpy(to, own, row_bytes);
    const size_t line = row_bytes / static_cast<size_t>(mix_.height);
    const size_t pixel = line / static_cast<size_t>(mix_.width);
    const size_t bytes = static_cast<size_t>(box.width) * pixel;
    for (int64_t y = box.top; y < box.top + box.height; ++y) {
      const size_t at = static_cast<size_t>(y) * line + static_cast<size_t>(box.left) * pixel;
      std::memcpy(to + at, other + at, bytes);
    }
  }

  template <typename T>
  static void Blend(const uint8_t* own, const uint8_t* other, size_t row_bytes, double keep,
                    uint8_t* to) {
    const T a = static_cast<T>(keep), b = static_cast<T>(1 - keep);
    for (size_t i = 0; i < row_bytes; i += sizeof(T)) {
      T x, y;
      std::memcpy(&x, own + i, sizeof(T));
      std::memcpy(&y, other + i, sizeof(T));
      const T left = a * x, right = b * y;
      const T sum = left + right;
      std::memcpy(to + i, &sum, sizeof(T));
    }
  }

  const Mix mix_;
  const DType dtype_;
  const bool sets_shape_;
  const DrawSource source_;
};

absl::StatusOr<BoundRowFunction> BindMix(const Argument& x, const Mix& mix, const Argument& seed) {
  BoundRowFunction bound;
  bound.type = x.type;
  bound.kernel = std::make_shared<MixKernel>(
      mix, x.type.dtype, !NumElements(x.type.shape).has_value(), ReadDraws(seed));
  bound.tensor_arguments = {0};
  bound.draws = true;
  return bound;
}

absl::Status CheckAlpha(double alpha) {
  if (alpha >= 0.01 && alpha <= 1000) return absl::OkStatus();
  return WrongArgument("alpha", absl::StrCat("a constant of 0.01 to 1000, found ", alpha));
}

// Two axes are labels, four are images: what three are, an image or masks of a batch, cannot be
// told.
absl::Status CheckBatch(const Argument& x, bool images_of_any_dtype) {
  const size_t axes = x.type.shape.size();
  const bool images = axes == 4;
  const bool floating = x.type.dtype == DType::kFloat32 || x.type.dtype == DType::kFloat64;
  const bool numbers = IsInteger(x.type.dtype) || x.type.dtype == DType::kBool;
  if ((axes == 2 || images) && (floating || (images && images_of_any_dtype && numbers))) {
    return absl::OkStatus();
  }
  return WrongArgument(
      "x", absl::StrCat("a batch: ", images_of_any_dtype ? "numbers" : "floats",
                        " of shape (batch, height, width, channels), or floats of shape (batch, "
                        "classes), as one_hot makes them; found ",
                        TypeToString(x.type)));
}

absl::StatusOr<BoundRowFunction> BindMixup(absl::Span<const Argument> arguments) {
  Mix mix;
  mix.alpha = 0.2;
  if (const absl::Status status = FirstError(
          {CheckBatch(arguments[0], false), ReadConstant(arguments[1], "alpha", &mix.alpha)});
      !status.ok()) {
    return status;
  }
  if (const absl::Status status = CheckAlpha(mix.alpha); !status.ok()) return status;
  return BindMix(arguments[0], mix, arguments[2]);
}

absl::StatusOr<BoundRowFunction> BindCutmix(absl::Span<const Argument> arguments) {
  Mix mix;
  mix.cuts = true;
  if (const absl::Status status = FirstError(
          {CheckBatch(arguments[0], true), ReadSize(arguments[1], "size", &mix.height, &mix.width),
           ReadConstant(arguments[2], "alpha", &mix.alpha)});
      !status.ok()) {
    return status;
  }
  if (const absl::Status status = CheckAlpha(mix.alpha); !status.ok()) return status;
  const Shape& shape = arguments[0].type.shape;
  mix.images = shape.size() == 4;
  if (mix.images && (shape[1] != mix.height || shape[2] != mix.width)) {
    return WrongArgument(
        "size", absl::StrCat("the images' own, found [", mix.height, ", ", mix.width, "] for ",
                             TypeToString(arguments[0].type)));
  }
  return BindMix(arguments[0], mix, arguments[3]);
}

#define PENSTOCK_BATCH_MANUAL                                                                     \
  "seed: an integer constant. Images and labels are mixed alike where they are given the same.\n" \
  "\n"                                                                                            \
  "Stands in a map after batch, and takes a batch as a whole: "                                   \
  "`image = mixup(image, seed=1)`, `label = mixup(one_hot(label, 10), seed=1)`.\n"                \
  "Lambda and the partners, a random order of the batch, are drawn once for each batch."

const RowFunctionRegistration kMixup({
    .name = "mixup",
    .signature = "mixup(x, alpha=0.2, seed=None)",
    .doc = "lambda * x + (1 - lambda) * y, where y is another element of the batch (H. Zhang et "
           "al., \"mixup\", 2017).\n"
           "\n"
           "x: float32 or float64 of shape (batch, height, width, channels), or labels of shape "
           "(batch, classes).\n"
           "alpha: lambda is drawn from Beta(alpha, alpha), a constant.\n" PENSTOCK_BATCH_MANUAL,
    .bind = BindMixup,
    .random = true,
});

const RowFunctionRegistration kCutmix({
    .name = "cutmix",
    .signature = "cutmix(x, size, alpha=1, seed=None)",
    .doc = "Images with a rectangle of another one of the batch, and labels mixed by the areas (S. "
           "Yun et al., \"CutMix\", 2019).\n"
           "\n"
           "x: numbers of shape (batch, height, width, channels), or floating labels of shape "
           "(batch, classes).\n"
           "size: the images' [height, width], constants.\n"
           "alpha: what part of the area stays is drawn from Beta(alpha, alpha), a "
           "constant.\n" PENSTOCK_BATCH_MANUAL,
    .bind = BindCutmix,
    .random = true,
});
#undef PENSTOCK_BATCH_MANUAL

}  // namespace
}  // namespace penstock::expr
