#include "server/expr/constant_lanes.h"

#include <cstring>
#include <numeric>

namespace penstock::expr {
namespace {

// One value of a constant as its lane type holds it.
template <typename T>
void AppendAs(std::vector<uint8_t>& bytes, T value) {
  const size_t end = bytes.size();
  bytes.resize(end + sizeof(T));
  std::memcpy(bytes.data() + end, &value, sizeof(T));
}

template <typename From, typename To>
std::vector<uint8_t> Widen(const std::vector<uint8_t>& data) {
  std::vector<uint8_t> bytes;
  bytes.reserve(data.size() / sizeof(From) * sizeof(To));
  for (size_t i = 0; i < data.size(); i += sizeof(From)) {
    From value;
    std::memcpy(&value, data.data() + i, sizeof(From));
    AppendAs<To>(bytes, static_cast<To>(value));
  }
  return bytes;
}

}  // namespace

std::vector<uint8_t> ToLanes(const Node& node) {
  switch (node.type.dtype) {
    case DType::kBool:
    case DType::kUint8:
      return Widen<uint8_t, int32_t>(node.data);
    case DType::kInt8:
      return Widen<int8_t, int32_t>(node.data);
    case DType::kUint16:
      return Widen<uint16_t, int32_t>(node.data);
    case DType::kInt16:
      return Widen<int16_t, int32_t>(node.data);
    default:
      return node.data;
  }
}

size_t Period(const std::vector<uint8_t>& bytes, size_t element_bytes) {
  const size_t count = bytes.size() / element_bytes;
  for (size_t period = 1; period <= count / 2; ++period) {
    if (count % period != 0) continue;
    const size_t shift = period * element_bytes;
    if (std::memcmp(bytes.data(), bytes.data() + shift, bytes.size() - shift) == 0) return period;
  }
  return count;
}

size_t RunElements(const std::vector<uint8_t>& bytes, size_t element_bytes, size_t least) {
  const size_t count = bytes.size() / element_bytes;
  size_t run = count;
  for (size_t i = 1; i < count && run >= least; ++i) {
    const uint8_t* const value = bytes.data() + i * element_bytes;
    if (std::memcmp(value - element_bytes, value, element_bytes) != 0) run = std::gcd(run, i);
  }
  return run;
}

}  // namespace penstock::expr
