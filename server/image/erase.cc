#include "server/image/erase.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

template <typename T>
bool Put(double number, PixelValue* value) {
  if constexpr (std::is_integral_v<T>) {
    if (number < static_cast<double>(std::numeric_limits<T>::min()) ||
        number > static_cast<double>(std::numeric_limits<T>::max()) ||
        std::floor(number) != number) {
      return false;
    }
  }
  const T pixel = static_cast<T>(number);
  std::memcpy(value->bytes, &pixel, sizeof(T));
  return true;
}

}  // namespace

absl::Status ReadPixelValue(const Argument& argument, std::string_view name, DType dtype,
                            PixelValue* value) {
  double number = 0;
  if (const absl::Status status = ReadConstant(argument, name, &number); !status.ok()) {
    return status;
  }
  bool fits = false;
  switch (dtype) {
    case DType::kUint8:
      fits = Put<uint8_t>(number, value);
      break;
    case DType::kInt8:
      fits = Put<int8_t>(number, value);
      break;
    case DType::kUint16:
      fits = Put<uint16_t>(number, value);
      break;
    case DType::kInt16:
      fits = Put<int16_t>(number, value);
      break;
    case DType::kInt32:
      fits = Put<int32_t>(number, value);
      break;
    case DType::kFloat32:
      fits = Put<float>(number, value);
      break;
    case DType::kFloat64:
      fits = Put<double>(number, value);
      break;
    default:
      break;
  }
  if (fits) return absl::OkStatus();
  return WrongArgument(name, absl::StrCat("a value of ", DTypeName(dtype), ", found ", number));
}

void RunErase(const Window& window, const PixelValue& value, DType dtype, const RowValue& image,
              RowOutput& out) {
  constexpr int64_t kTileBytes = 4096;
  const int64_t height = image.shape[0], channels = image.shape[2];
  const auto element_bytes = static_cast<int64_t>(DTypeSize(dtype));
  const int64_t pixel_bytes = channels * element_bytes;
  const int64_t row_bytes = image.shape[1] * pixel_bytes;
  if (height == 0 || row_bytes == 0) return;
  const int64_t tile_rows = std::max<int64_t>(kTileBytes / row_bytes, 1);
  for (int64_t y = 0; y < height;) {
    const int64_t count = std::min(tile_rows, height - y);
    uint8_t* to = out.Reserve(static_cast<size_t>(count * row_bytes));
    std::memcpy(to, image.data + y * row_bytes, static_cast<size_t>(count * row_bytes));
    for (int64_t i = 0; i < count; ++i, ++y, to += row_bytes) {
      if (y < window.top || y >= window.top + window.height) continue;
      uint8_t* const first = to + window.left * pixel_bytes;
      for (int64_t x = 0; x < window.width * channels; ++x)
        std::memcpy(first + x * element_bytes, value.bytes, static_cast<size_t>(element_bytes));
    }
    out.Commit();
  }
}

}  // namespace penstock::expr
