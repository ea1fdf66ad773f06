#include "server/engine/tensor/padding_options.h"

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/kernels/half.h"

namespace penstock {
namespace {

template <typename Value>
std::string BytesOf(Value value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename Type>
absl::StatusOr<std::string> Integer(DType dtype, const v1::PaddingValue& value) {
  if (value.kind_case() == v1::PaddingValue::kUint64Value) {
    if (value.uint64_value() <= static_cast<uint64_t>(std::numeric_limits<Type>::max()))
      return BytesOf(static_cast<Type>(value.uint64_value()));
  } else if (value.kind_case() == v1::PaddingValue::kInt64Value) {
    const int64_t number = value.int64_value();
    const bool fits = number < 0
                          ? std::numeric_limits<Type>::is_signed &&
                                number >= static_cast<int64_t>(std::numeric_limits<Type>::min())
                          : static_cast<uint64_t>(number) <=
                                static_cast<uint64_t>(std::numeric_limits<Type>::max());
    if (fits) return BytesOf(static_cast<Type>(number));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected an int64_value or uint64_value in the range of ", DTypeName(dtype)));
}

absl::StatusOr<std::string> Floating(DType dtype, const v1::PaddingValue& value) {
  double number = 0;
  switch (value.kind_case()) {
    case v1::PaddingValue::kFloatValue:
      number = value.float_value();
      break;
    case v1::PaddingValue::kInt64Value:
      number = static_cast<double>(value.int64_value());
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("expected a float_value for ", DTypeName(dtype)));
  }
  switch (dtype) {
    case DType::kFloat16:
      return BytesOf(kernels::ToFloat16(number));
    case DType::kBfloat16:
      return BytesOf(kernels::ToBfloat16(static_cast<float>(number)));
    case DType::kFloat32:
      return BytesOf(static_cast<float>(number));
    default:
      return BytesOf(number);
  }
}

// One element of the feature's type.
absl::StatusOr<std::string> ToElement(DType dtype, const v1::PaddingValue& value) {
  switch (dtype) {
    case DType::kString:
      if (value.kind_case() == v1::PaddingValue::kBytesValue) return value.bytes_value();
      return absl::InvalidArgumentError("expected a bytes_value for string");
    case DType::kBool:
      if (value.kind_case() == v1::PaddingValue::kBoolValue) return BytesOf(value.bool_value());
      return absl::InvalidArgumentError("expected a bool_value for bool");
    case DType::kInt8:
      return Integer<int8_t>(dtype, value);
    case DType::kUint8:
      return Integer<uint8_t>(dtype, value);
    case DType::kInt16:
      return Integer<int16_t>(dtype, value);
    case DType::kUint16:
      return Integer<uint16_t>(dtype, value);
    case DType::kInt32:
      return Integer<int32_t>(dtype, value);
    case DType::kUint32:
      return Integer<uint32_t>(dtype, value);
    case DType::kInt64:
      return Integer<int64_t>(dtype, value);
    case DType::kUint64:
      return Integer<uint64_t>(dtype, value);
    default:
      return Floating(dtype, value);
  }
}

absl::StatusOr<size_t> FindFeature(const Signature& signature, const std::string& name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < signature.size(); ++i) {
    if (signature[i].name == name) return i;
    names.push_back(signature[i].name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no feature \"", name, "\"", DidYouMean(name, names)));
}

// What a row of shape `own` may be padded to. A size of -1 asks for the longest row, which is every
// row's own where it is known.
absl::StatusOr<Shape> PaddedShape(const Shape& own,
                                  const google::protobuf::RepeatedField<int64_t>& sizes) {
  Shape shape(sizes.begin(), sizes.end());
  bool fits = shape.size() == own.size();
  for (size_t axis = 0; fits && axis < shape.size(); ++axis) {
    if (shape[axis] == -1) shape[axis] = own[axis];
    fits = shape[axis] >= own[axis];
  }
  if (fits) return shape;
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", own.size(), " sizes, each -1 or at least that of the feature's ",
                   ShapeToString(own), ", found ", ShapeToString(shape)));
}

}  // namespace

absl::string_view HowToBeDense(const TensorType& type) {
  const bool is_list = type.form == RowForm::kSparse || type.form == RowForm::kRagged;
  return is_list ? "; in a map before it, x[:] makes a dense list of such a feature x" : "";
}

absl::Status ReadPadding(const google::protobuf::RepeatedPtrField<v1::PaddedShape>& padded_shapes,
                         const google::protobuf::RepeatedPtrField<v1::PaddingValue>& padding_values,
                         const Signature& signature, BatchForm* form) {
  form->kind = BatchForm::Kind::kPadded;
  for (const Feature& feature : signature) {
    if (feature.type.form != RowForm::kPlain) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected dense features, found \"", feature.name, "\" ",
                       TypeToString(feature.type), HowToBeDense(feature.type)));
    }
    form->shapes.push_back(feature.type.shape);
  }
  form->values.resize(signature.size());
  std::set<size_t> seen;
  for (const v1::PaddedShape& padded : padded_shapes) {
    absl::StatusOr<size_t> index = FindFeature(signature, padded.feature());
    if (!index.ok()) return index.status();
    absl::StatusOr<Shape> shape = PaddedShape(form->shapes[*index], padded.shape());
    const std::string where = absl::StrCat("padded_shape of \"", padded.feature(), "\": ");
    if (!shape.ok())
      return absl::InvalidArgumentError(absl::StrCat(where, shape.status().message()));
    if (!seen.insert(*index).second)
      return absl::InvalidArgumentError(absl::StrCat(where, "given twice"));
    form->shapes[*index] = *std::move(shape);
  }
  seen.clear();
  for (const v1::PaddingValue& value : padding_values) {
    absl::StatusOr<size_t> index = FindFeature(signature, value.feature());
    if (!index.ok()) return index.status();
    const std::string where = absl::StrCat("padding_value of \"", value.feature(), "\": ");
    absl::StatusOr<std::string> element = ToElement(signature[*index].type.dtype, value);
    if (!element.ok())
      return absl::InvalidArgumentError(absl::StrCat(where, element.status().message()));
    if (!seen.insert(*index).second)
      return absl::InvalidArgumentError(absl::StrCat(where, "given twice"));
    form->values[*index] = *std::move(element);
  }
  return absl::OkStatus();
}

}  // namespace penstock
