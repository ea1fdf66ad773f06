// A rectangle of an image painted over.
//
// Threads:  safe from any thread.
// Cost:     one copy of the image.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/expr/function.h"
#include "server/image/window.h"

namespace penstock::expr {

// One value in memory as an image has it.
struct PixelValue {
  uint8_t bytes[8] = {};
};

// The constant `number` in an image of that dtype. InvalidArgument when it does not fit.
absl::Status ReadPixelValue(const Argument& argument, std::string_view name, DType dtype,
                            PixelValue* value);

// Writes an image whose shape has been set, with `value` in the window, which lies inside of it.
void RunErase(const Window& window, const PixelValue& value, DType dtype, const RowValue& image,
              RowOutput& out);

}  // namespace penstock::expr
