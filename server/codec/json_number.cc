#include "server/codec/json_number.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/charconv.h"
#include "base/json_text.h"

namespace penstock {
namespace {

constexpr char kOutOfRange[] = "out of its range";
constexpr size_t kExactDigits = 18;  // of any int64

template <typename T>
const char* Put(T value, uint8_t* out) {
  std::memcpy(out, &value, sizeof(value));
  return nullptr;
}

// Of a JsonScalar::kInteger. False: it is out of range.
bool ToInt64(absl::string_view token, int64_t* value) {
  const bool is_negative = token[0] == '-';
  if (is_negative) token.remove_prefix(1);
  uint64_t magnitude = 0;
  if (token.size() <= kExactDigits) {
    for (const char digit : token) magnitude = magnitude * 10 + static_cast<uint64_t>(digit - '0');
  } else {
    for (const char digit : token) {
      if (__builtin_mul_overflow(magnitude, uint64_t{10}, &magnitude) ||
          __builtin_add_overflow(magnitude, static_cast<uint64_t>(digit - '0'), &magnitude))
        return false;
    }
    const uint64_t most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (magnitude > most + (is_negative ? 1 : 0)) return false;
  }
  *value = static_cast<int64_t>(is_negative ? 0 - magnitude : magnitude);
  return true;
}

// False: it is finite, and becomes infinite.
bool ToDouble(absl::string_view token, JsonScalar kind, double* value) {
  if (kind == JsonScalar::kNotFinite) {
    *value = token == "NaN" ? std::numeric_limits<double>::quiet_NaN()
                            : (token[0] == '-' ? -1 : 1) * std::numeric_limits<double>::infinity();
    return true;
  }
  const absl::from_chars_result result =
      absl::from_chars(token.data(), token.data() + token.size(), *value);
  // "-0" is an integer, of which Python has one zero; "-0.0" is none.
  if (kind == JsonScalar::kInteger && *value == 0) *value = 0;
  // What is nearer to zero than any number is zero, or the least number, as in Python.
  return result.ec == std::errc() || std::abs(*value) <= 1;
}

}  // namespace

const char* ReadJsonScalar(absl::string_view token, DType dtype, uint8_t* out) {
  const JsonScalar kind = JsonScalarOf(token);
  if (dtype == DType::kBool) {
    if (kind != JsonScalar::kTrue && kind != JsonScalar::kFalse) return "";
    return Put<uint8_t>(kind == JsonScalar::kTrue, out);
  }
  if (kind != JsonScalar::kInteger && kind != JsonScalar::kReal && kind != JsonScalar::kNotFinite)
    return "";
  if (dtype == DType::kInt32 || dtype == DType::kInt64) {
    if (kind == JsonScalar::kNotFinite) return kOutOfRange;
    if (kind == JsonScalar::kReal) return "a number with a fraction or exponent";
    int64_t value = 0;
    if (!ToInt64(token, &value)) return kOutOfRange;
    if (dtype == DType::kInt64) return Put(value, out);
    if (value != static_cast<int32_t>(value)) return kOutOfRange;
    return Put(static_cast<int32_t>(value), out);
  }
  double value = 0;
  if (!ToDouble(token, kind, &value)) return kOutOfRange;
  if (dtype == DType::kFloat64) return Put(value, out);
  const auto narrow = static_cast<float>(value);
  if (std::isinf(narrow) && !std::isinf(value)) return kOutOfRange;
  return Put(narrow, out);
}

}  // namespace penstock
