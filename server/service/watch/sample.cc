#include "server/service/watch/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/codec/png_writer.h"

namespace penstock {
namespace {

constexpr int64_t kMinPictureSide = 8;
constexpr int kSheetColumns = 8;
constexpr int kGapPixels = 2;

double Float16ToDouble(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else {
    value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

template <typename T>
double Load(const uint8_t* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return static_cast<double>(value);
}

using Loader = double (*)(const uint8_t* data);

// Null for strings.
Loader LoaderOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUint8:
      return Load<uint8_t>;
    case DType::kInt8:
      return Load<int8_t>;
    case DType::kInt16:
      return Load<int16_t>;
    case DType::kUint16:
      return Load<uint16_t>;
    case DType::kInt32:
      return Load<int32_t>;
    case DType::kUint32:
      return Load<uint32_t>;
    case DType::kInt64:
      return Load<int64_t>;
    case DType::kUint64:
      return Load<uint64_t>;
    case DType::kFloat32:
      return Load<float>;
    case DType::kFloat64:
      return Load<double>;
    case DType::kFloat16:
      return [](const uint8_t* data) {
        uint16_t bits;
        std::memcpy(&bits, data, sizeof(bits));
        return Float16ToDouble(bits);
      };
    case DType::kBfloat16:
      return [](const uint8_t* data) {
        uint16_t bits;
        std::memcpy(&bits, data, sizeof(bits));
        return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
      };
    default:
      return nullptr;
  }
}

struct Range {
  double least = 0;
  double most = 0;
  uint64_t finite = 0;
};

Range RangeOf(Loader load, size_t size, const uint8_t* data, uint64_t values) {
  Range range;
  for (uint64_t i = 0; i < values; ++i) {
    const double value = load(data + i * size);
    if (!std::isfinite(value)) continue;
    range.least = range.finite == 0 ? value : std::min(range.least, value);
    range.most = range.finite == 0 ? value : std::max(range.most, value);
    ++range.finite;
  }
  return range;
}

// Where a value lies between the ends, in [0, 1]; without overflow for ends that are far apart.
double Part(double value, const Range& range) {
  const double width = range.most / 2 - range.least / 2;
  if (!(width > 0)) return 0;
  return std::clamp((value / 2 - range.least / 2) / width, 0.0, 1.0);
}

}  // namespace

v1::SampledFeature DescribeValues(DType dtype, const uint8_t* data, uint64_t values) {
  v1::SampledFeature feature;
  const Loader load = LoaderOf(dtype);
  if (load == nullptr) return feature;
  values = std::min(values, kMaxSampledValues);
  const size_t size = DTypeSize(dtype);
  const Range range = RangeOf(load, size, data, values);
  feature.set_values(values);
  feature.set_not_finite(values - range.finite);
  feature.set_least(range.least);
  feature.set_most(range.most);
  uint64_t bins[kSampledBins] = {};
  uint64_t zeros = 0;
  // Of the distances from the middle, in halves of the range, so that no square overflows.
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < values; ++i) {
    const double value = load(data + i * size);
    if (!std::isfinite(value)) continue;
    zeros += value == 0;
    const double part = Part(value, range);
    sum += part;
    squares += part * part;
    ++bins[std::min(kSampledBins - 1, static_cast<int>(part * kSampledBins))];
  }
  feature.set_zeros(zeros);
  if (range.finite == 0) return feature;
  const double count = static_cast<double>(range.finite);
  const double mean = sum / count;
  feature.set_mean(range.least + mean * range.most - mean * range.least);
  feature.set_deviation(std::sqrt(std::max(0.0, squares / count - mean * mean)) *
                        (range.most - range.least));
  for (const uint64_t bin : bins) feature.add_histogram(bin);
  return feature;
}

std::optional<PictureLayout> LooksLikePictures(const std::vector<int64_t>& shape) {
  const auto is_color = [](int64_t channels) { return channels == 1 || channels == 3; };
  PictureLayout layout;
  if (shape.size() == 2) {
    layout = {shape[0], shape[1], 1, false};
  } else if (shape.size() == 3 && is_color(shape[2])) {
    layout = {shape[0], shape[1], shape[2], false};
  } else if (shape.size() == 3 && is_color(shape[0])) {
    layout = {shape[1], shape[2], shape[0], true};
  } else {
    return std::nullopt;
  }
  if (layout.height < kMinPictureSide || layout.width < kMinPictureSide) return std::nullopt;
  return layout;
}

absl::StatusOr<std::string> ContactSheet(DType dtype, const PictureLayout& layout,
                                         const uint8_t* data, int rows) {
  const Loader load = LoaderOf(dtype);
  if (load == nullptr || rows < 1)
    return absl::InvalidArgumentError("no pictures: expected numbers, and a row at least");
  const size_t size = DTypeSize(dtype);
  const int64_t pixels = layout.height * layout.width * layout.channels;
  const int64_t step = std::max<int64_t>(
      1, (std::max(layout.height, layout.width) + kSheetCellSide - 1) / kSheetCellSide);
  const int64_t cell_height = (layout.height + step - 1) / step;
  const int64_t cell_width = (layout.width + step - 1) / step;
  const int columns = std::min(rows, kSheetColumns);
  const int lines = (rows + columns - 1) / columns;
  const int64_t height = lines * (cell_height + kGapPixels) - kGapPixels;
  const int64_t width = columns * (cell_width + kGapPixels) - kGapPixels;
  // 1 for grey, 3 for colours: what is between the pictures is white.
  std::vector<uint8_t> sheet(static_cast<size_t>(height * width * layout.channels), 255);
  const bool is_bytes = dtype == DType::kUint8;
  const auto offset = [&](int64_t y, int64_t x, int64_t channel) {
    return layout.channels_first ? (channel * layout.height + y) * layout.width + x
                                 : (y * layout.width + x) * layout.channels + channel;
  };
  // What is shown decides what is black and what is white.
  Range range;
  const auto for_each_shown = [&](auto&& take) {
    for (int row = 0; row < rows; ++row) {
      const uint8_t* picture = data + static_cast<size_t>(row * pixels) * size;
      const int64_t top = row / columns * (cell_height + kGapPixels);
      const int64_t left = row % columns * (cell_width + kGapPixels);
      for (int64_t y = 0; y < cell_height; ++y) {
        for (int64_t x = 0; x < cell_width; ++x) {
          for (int64_t channel = 0; channel < layout.channels; ++channel) {
            const int64_t at = offset(y * step, x * step, channel);
            take(load(picture + static_cast<size_t>(at) * size),
                 ((top + y) * width + left + x) * layout.channels + channel);
          }
        }
      }
    }
  };
  if (!is_bytes) {
    for_each_shown([&range](double value, int64_t) {
      if (!std::isfinite(value)) return;
      range.least = range.finite == 0 ? value : std::min(range.least, value);
      range.most = range.finite == 0 ? value : std::max(range.most, value);
      ++range.finite;
    });
  }
  for_each_shown([&](double value, int64_t at) {
    if (!is_bytes) value = std::isfinite(value) ? 255 * Part(value, range) : 0;
    sheet[static_cast<size_t>(at)] = static_cast<uint8_t>(std::lround(value));
  });
  return EncodePng(sheet.data(), height, width, layout.channels, /*sample_bytes=*/1,
                   /*compression=*/-1);
}

absl::StatusOr<v1::SamplePipelineResponse> Sample(ring::Writer& writer,
                                                  const std::vector<BatchTensor>& tensors,
                                                  int sheet_rows, bool with_numbers) {
  const std::optional<ring::HeldStep> held = writer.HoldNewest();
  if (!held) {
    return absl::FailedPreconditionError(
        "nothing to sample: no batch has been made yet, or another sample is being taken");
  }
  v1::SamplePipelineResponse response;
  response.set_step(held->step);
  response.set_rows(held->rows);
  absl::Status status;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const BatchTensor& tensor = tensors[i];
    const uint8_t* data = writer.tensor(held->slot, static_cast<int>(i));
    v1::SampledFeature feature;
    if (data != nullptr) {
      std::vector<int64_t> shape(tensor.type.shape.begin(), tensor.type.shape.end());
      // A short batch fills the first rows.
      if (tensor.batched && !shape.empty()) shape[0] = std::min<int64_t>(shape[0], held->rows);
      uint64_t values = 1;
      for (const int64_t axis : shape) values *= static_cast<uint64_t>(axis);
      if (with_numbers) feature = DescribeValues(tensor.type.dtype, data, values);
      for (const int64_t axis : shape) feature.add_shape(axis);
      if (tensor.batched && response.sheet_png().empty() && !shape.empty() && shape[0] > 0) {
        const auto layout = LooksLikePictures({shape.begin() + 1, shape.end()});
        if (layout) {
          const auto sheet =
              ContactSheet(tensor.type.dtype, *layout, data,
                           static_cast<int>(std::min<int64_t>(sheet_rows, shape[0])));
          if (sheet.ok()) {
            response.set_sheet_png(*sheet);
            response.set_sheet_feature(tensor.name);
          } else {
            status = sheet.status();
          }
        }
      }
    }
    feature.set_name(tensor.name);
    feature.set_dtype(static_cast<v1::DataType>(tensor.type.dtype));
    *response.add_features() = std::move(feature);
  }
  writer.LetGo();
  if (!status.ok()) return status;
  return response;
}

}  // namespace penstock
