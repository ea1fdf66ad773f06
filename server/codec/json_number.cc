#include "server/codec/json_number.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

#include "absl/strings/charconv.h"
#include "base/json_text.h"

namespace penstock {
namespace {

constexpr char kOutOfRange[] = "out of its range";

template <typename T>
const char* Put(T value, uint8_t* out) {
  std::memcpy(out, &value, sizeof(value));
  return nullptr;
}

// Of a JsonScalar::kInteger.
template <typename T>
const char* PutInteger(absl::string_view token, uint8_t* out) {
  T value = 0;
  const bool fits =
      std::from_chars(token.data(), token.data() + token.size(), value).ec == std::errc();
  return fits ? Put(value, out) : kOutOfRange;
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
    return dtype == DType::kInt32 ? PutInteger<int32_t>(token, out)
                                  : PutInteger<int64_t>(token, out);
  }
  double value = 0;
  if (!ToDouble(token, kind, &value)) return kOutOfRange;
  if (dtype == DType::kFloat64) return Put(value, out);
  const auto narrow = static_cast<float>(value);
  if (std::isinf(narrow) && !std::isinf(value)) return kOutOfRange;
  return Put(narrow, out);
}

}  // namespace penstock
