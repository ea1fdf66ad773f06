#include "server/image/drawn_window.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "server/expr/arguments.h"
#include "server/kernels/power.h"

namespace penstock::expr {
namespace {

class CopyDrawnWindow final : public RowKernel {
 public:
  CopyDrawnWindow(DType dtype, bool sets_shape, DrawSource source, DrawWindow draw)
      : dtype_(dtype),
        sets_shape_(sets_shape),
        source_(std::move(source)),
        draw_(std::move(draw)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const auto window = Place(arguments[0].shape, arguments[1], out);
    if (!window.ok()) return window.status();
    RunWindow(*window, dtype_, arguments[0], out);
    return absl::OkStatus();
  }

  bool takes_parts() const override { return true; }
  absl::Status RunOnPart(PartReader& reader, const Shape& image, absl::Span<const RowValue> others,
                         Arena& scratch, RowOutput& out) const override {
    const auto window = Place(image, others[0], out);
    if (!window.ok()) return window.status();
    return RunWindowOnPart(*window, dtype_, reader, image, scratch, out);
  }

 private:
  absl::StatusOr<Window> Place(const Shape& image, const RowValue& identity, RowOutput& out) const {
    Draws draws(source_, identity);
    auto window = draw_(draws, image);
    if (!window.ok()) return window;
    NoteWindow(*window, draws);
    if (sets_shape_) out.SetShape({window->height, window->width, image[2]});
    return window;
  }

  const DType dtype_;
  const bool sets_shape_;
  const DrawSource source_;
  const DrawWindow draw_;
};

// The C library's functions differ from one machine to another.
double Exp(double x) { return static_cast<double>(kernels::ExpExtended(x)); }
double Log(double x) { return static_cast<double>(kernels::LogExtended(x)); }

int64_t Rounded(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

}  // namespace

void NoteWindow(const Window& window, Draws& draws) {
  draws.Note("top", static_cast<double>(window.top));
  draws.Note("left", static_cast<double>(window.left));
  draws.Note("height", static_cast<double>(window.height));
  draws.Note("width", static_cast<double>(window.width));
}

absl::StatusOr<BoundRowFunction> BindDrawnWindow(const TensorType& image, const Argument& seed,
                                                 int64_t height, int64_t width, DrawWindow draw) {
  const Shape& shape = image.shape;
  if (shape[0] != kUnknownSize && shape[1] != kUnknownSize && shape[2] != kUnknownSize) {
    // Whether it fits at all.
    const RowIdentity nobody;
    const DrawSource source;
    Draws draws(source, {reinterpret_cast<const uint8_t*>(&nobody), sizeof(nobody), {}});
    const auto window = draw(draws, shape);
    if (!window.ok()) return absl::InvalidArgumentError(window.status().message());
  }
  BoundRowFunction bound;
  bound.type = {image.dtype, {height, width, shape[2]}};
  bound.kernel = std::make_shared<CopyDrawnWindow>(image.dtype, shape[2] == kUnknownSize,
                                                   ReadDraws(seed), std::move(draw));
  bound.tensor_arguments = {0};
  bound.draws = true;
  return bound;
}

bool TryDrawPart(const WindowLimits& limits, PartKind kind, Draws& draws, int64_t height,
                 int64_t width, Window* window) {
  constexpr int kTries = 10;
  const double area = static_cast<double>(height * width);
  const double ratio_low = Log(limits.ratio_low), ratio_high = Log(limits.ratio_high);
  for (int i = 0; i < kTries; ++i) {
    const double part = area * draws.Between(limits.scale_low, limits.scale_high);
    const double ratio = Exp(draws.Between(ratio_low, ratio_high));
    window->width = Rounded(std::sqrt(part * ratio));
    window->height = Rounded(std::sqrt(part / ratio));
    if (kind == PartKind::kErased) std::swap(window->width, window->height);
    const int64_t margin = kind == PartKind::kErased ? 1 : 0;
    if (window->width < 1 || window->height < 1 || window->width > width - margin ||
        window->height > height - margin) {
      continue;
    }
    window->top =
        static_cast<int64_t>(draws.Below(static_cast<uint64_t>(height - window->height + 1)));
    window->left =
        static_cast<int64_t>(draws.Below(static_cast<uint64_t>(width - window->width + 1)));
    return true;
  }
  return false;
}

Window DrawPart(const WindowLimits& limits, Draws& draws, int64_t height, int64_t width) {
  Window window;
  if (TryDrawPart(limits, PartKind::kCropped, draws, height, width, &window)) return window;
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  window.height = height;
  window.width = width;
  if (ratio < limits.ratio_low) {
    window.height = Rounded(static_cast<double>(width) / limits.ratio_low);
  } else if (ratio > limits.ratio_high) {
    window.width = Rounded(static_cast<double>(height) * limits.ratio_high);
  }
  window.height = std::clamp<int64_t>(window.height, 1, height);
  window.width = std::clamp<int64_t>(window.width, 1, width);
  window.top = (height - window.height) / 2;
  window.left = (width - window.width) / 2;
  return window;
}

}  // namespace penstock::expr
