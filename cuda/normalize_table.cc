#include "cuda/normalize_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cuda/expand_body.h"

namespace penstock::cuda {
namespace {

using ring::TensorDType;

// The number of a channel; `none` where there is none.
template <typename Number>
Number Of(const std::vector<double>& numbers, size_t channel, double none) {
  return static_cast<Number>(numbers.empty() ? none
                                             : numbers[std::min(channel, numbers.size() - 1)]);
}

template <typename Number, typename To>
std::vector<uint8_t> Make(const Expansion& expansion, uint32_t channels, To (*store)(Number)) {
  std::vector<To> table(size_t{kTableValues} * channels);
  for (uint32_t channel = 0; channel < channels; ++channel) {
    for (uint32_t byte = 0; byte < kTableValues; ++byte) {
      Number number = static_cast<Number>(byte) / Of<Number>(expansion.scale, channel, 1);
      number = number - Of<Number>(expansion.mean, channel, 0);
      number = number / Of<Number>(expansion.deviation, channel, 1);
      table[channel * kTableValues + byte] = store(number);
    }
  }
  std::vector<uint8_t> bytes(table.size() * sizeof(To));
  std::memcpy(bytes.data(), table.data(), bytes.size());
  return bytes;
}

}  // namespace

uint16_t ToHalfBits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000)
    return static_cast<uint16_t>(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude >= 0x38800000) {
    const uint32_t odd = magnitude >> 13 & 1;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xFFF + odd) >> 13));
  }
  const uint32_t exponent = magnitude >> 23;
  // Below half of the least number that is not normal.
  if (exponent < 102) return static_cast<uint16_t>(sign);
  const uint32_t fraction = (magnitude & 0x7FFFFF) | 0x800000;
  const uint32_t shift = 126 - exponent;
  const uint32_t kept = fraction >> shift;
  const uint32_t rest = fraction & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  return static_cast<uint16_t>(sign | (kept + (rest > half || (rest == half && (kept & 1) != 0))));
}

uint16_t ToBrainBits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

bool IsPerChannel(const Expansion& expansion) {
  return expansion.scale.size() > 1 || expansion.mean.size() > 1 || expansion.deviation.size() > 1;
}

std::vector<uint8_t> NormalizeTable(const Expansion& expansion, uint32_t channels) {
  const uint32_t own = IsPerChannel(expansion) ? channels : 1;
  switch (expansion.dtype) {
    case TensorDType::kFloat16:
      return Make<float, uint16_t>(expansion, own, &ToHalfBits);
    case TensorDType::kBfloat16:
      return Make<float, uint16_t>(expansion, own, &ToBrainBits);
    case TensorDType::kFloat64:
      return Make<double, double>(expansion, own, [](double number) { return number; });
    default:
      return Make<float, float>(expansion, own, [](float number) { return number; });
  }
}

}  // namespace penstock::cuda
