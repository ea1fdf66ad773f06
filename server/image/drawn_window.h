// A part of an image whose place is drawn.
//
// Threads:  safe from any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "server/expr/draws.h"
#include "server/image/window.h"

namespace penstock::expr {

// Where the window lies in an image of this shape, inside of it. An error is one of the image.
using DrawWindow = std::function<absl::StatusOr<Window>(Draws& draws, const Shape& image)>;

// Tells what was drawn.
void NoteWindow(const Window& window, Draws& draws);

// The call of a function that copies a window of `height` x `width` pixels.
absl::StatusOr<BoundRowFunction> BindDrawnWindow(const TensorType& image, const Argument& seed,
                                                 int64_t height, int64_t width, DrawWindow draw);

// As torchvision's RandomResizedCrop draws it: ten times a part of the area, evenly from [low,
// high], and a ratio of width to height, evenly by its logarithm; the first of them that fits lies
// anywhere with the same probability. If none does, it is the largest window in the middle whose
// ratio is within the limits.
struct WindowLimits {
  double scale_low = 0.08;
  double scale_high = 1;
  double ratio_low = 3.0 / 4;
  double ratio_high = 4.0 / 3;
};
Window DrawPart(const WindowLimits& limits, Draws& draws, int64_t height, int64_t width);

// What the ratio is, and which windows fit: torchvision's two ways.
enum class PartKind : uint8_t {
  kCropped,  // RandomResizedCrop: width over height; not larger than the image
  kErased,   // RandomErasing: height over width; smaller than the image in both directions
};

// The first half of DrawPart: false when none fits.
bool TryDrawPart(const WindowLimits& limits, PartKind kind, Draws& draws, int64_t height,
                 int64_t width, Window* window);

}  // namespace penstock::expr
