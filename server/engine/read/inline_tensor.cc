#include "server/engine/read/inline_tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/float16.h"

namespace penstock {
namespace {

template <typename T>
bool Put(T value, uint8_t* out) {
  std::memcpy(out, &value, sizeof(value));
  return true;
}

// Whether a number is a value of the integer type T.
template <typename T>
bool Holds(double value) {
  constexpr int kBits = std::numeric_limits<T>::digits;
  const double least = std::numeric_limits<T>::is_signed ? -std::ldexp(1.0, kBits) : 0;
  return value == std::trunc(value) && value >= least && value < std::ldexp(1.0, kBits);
}
template <typename T>
bool Holds(int64_t value) {
  return std::in_range<T>(value);
}
template <typename T>
bool Holds(uint64_t value) {
  return std::in_range<T>(value);
}

template <typename T, typename Value>
bool PutInteger(Value value, uint8_t* out) {
  return Holds<T>(value) && Put(static_cast<T>(value), out);
}

// Writes a number as one of the type; false where it is none.
template <typename Value>
bool PutNumber(DType dtype, Value value, uint8_t* out) {
  switch (dtype) {
    case DType::kBool:
      return (value == 0 || value == 1) && Put(static_cast<uint8_t>(value), out);
    case DType::kInt8:
      return PutInteger<int8_t>(value, out);
    case DType::kUint8:
      return PutInteger<uint8_t>(value, out);
    case DType::kInt16:
      return PutInteger<int16_t>(value, out);
    case DType::kUint16:
      return PutInteger<uint16_t>(value, out);
    case DType::kInt32:
      return PutInteger<int32_t>(value, out);
    case DType::kUint32:
      return PutInteger<uint32_t>(value, out);
    case DType::kInt64:
      return PutInteger<int64_t>(value, out);
    case DType::kUint64:
      return PutInteger<uint64_t>(value, out);
    case DType::kFloat16:
      return Put(Float16FromDouble(static_cast<double>(value)), out);
    case DType::kBfloat16:
      return Put(Bfloat16FromFloat(static_cast<float>(value)), out);
    case DType::kFloat32:
      return Put(static_cast<float>(value), out);
    case DType::kFloat64:
      return Put(static_cast<double>(value), out);
    case DType::kInvalid:
    case DType::kString:
      break;
  }
  return false;
}

template <typename Values>
absl::Status PutNumbers(DType dtype, const Values& values, std::string* out) {
  const size_t element_bytes = DTypeSize(dtype);
  out->resize(values.size() * element_bytes);
  for (int i = 0; i < values.size(); ++i) {
    if (!PutNumber(dtype, values[i], reinterpret_cast<uint8_t*>(&(*out)[i * element_bytes]))) {
      return absl::InvalidArgumentError(absl::StrCat("value ", i, ": expected one of type ",
                                                     DTypeName(dtype), ", found ", values[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorType> ReadDeclaredType(const v1::TensorValues& values) {
  TensorType type;
  if (!values.dtype().empty()) {
    const std::optional<DType> dtype = DTypeFromName(values.dtype());
    if (!dtype || *dtype == DType::kInvalid) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dtype: expected a NumPy name or \"string\", found \"", values.dtype(), "\""));
    }
    type.dtype = *dtype;
  }
  for (const int64_t size : values.shape()) {
    if (size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape: expected sizes of at least 0, found ", size));
    }
    type.shape.push_back(size);
  }
  return type;
}

absl::StatusOr<TensorSource> ReadInlineTensor(const v1::TensorValues& values, bool may_be_scalar) {
  absl::StatusOr<TensorType> type = ReadDeclaredType(values);
  if (!type.ok()) return type.status();
  TensorSource source;
  source.type = *std::move(type);
  const int count = values.value_size() + values.int_value_size() + values.uint_value_size() +
                    values.string_value_size();
  if (source.type.dtype == DType::kInvalid) {
    source.type.dtype = values.int_value_size() > 0      ? DType::kInt64
                        : values.uint_value_size() > 0   ? DType::kUint64
                        : values.string_value_size() > 0 ? DType::kString
                                                         : DType::kFloat64;
  }
  if (values.shape().empty() && !(may_be_scalar && count == 1)) {
    if (count == 0) return absl::InvalidArgumentError("expected values, found none");
    source.type.shape = {count};
  }
  if (NumElements(source.type.shape) != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected as many values as ", ShapeToString(source.type.shape), " has, found ", count));
  }
  const bool is_string = source.type.dtype == DType::kString;
  if (count > 0 && is_string != (values.string_value_size() > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", is_string ? "string_value" : "value, int_value or uint_value",
                     " for dtype ", DTypeName(source.type.dtype), ", found another one"));
  }
  absl::Status status;
  if (is_string) {
    source.strings.assign(values.string_value().begin(), values.string_value().end());
  } else if (values.value_size() > 0) {
    status = PutNumbers(source.type.dtype, values.value(), &source.numbers);
  } else if (values.int_value_size() > 0) {
    status = PutNumbers(source.type.dtype, values.int_value(), &source.numbers);
  } else {
    status = PutNumbers(source.type.dtype, values.uint_value(), &source.numbers);
  }
  if (!status.ok()) return status;
  return source;
}

}  // namespace penstock
