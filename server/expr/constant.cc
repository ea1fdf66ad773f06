#include "server/expr/constant.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/kernels/saturate.h"

namespace penstock::expr {
namespace {

// Calls `visit` with a value of the C++ type of `dtype`; false for types that constants cannot
// have.
template <typename Visit>
bool VisitType(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kBool:
      visit(bool());
      return true;
    case DType::kInt8:
      visit(int8_t());
      return true;
    case DType::kUint8:
      visit(uint8_t());
      return true;
    case DType::kInt16:
      visit(int16_t());
      return true;
    case DType::kUint16:
      visit(uint16_t());
      return true;
    case DType::kInt32:
      visit(int32_t());
      return true;
    case DType::kUint32:
      visit(uint32_t());
      return true;
    case DType::kInt64:
      visit(int64_t());
      return true;
    case DType::kUint64:
      visit(uint64_t());
      return true;
    case DType::kFloat32:
      visit(float());
      return true;
    case DType::kFloat64:
      visit(double());
      return true;
    default:
      return false;
  }
}

template <typename To>
To ReadScalar(const Node& node, size_t index) {
  To result{};
  VisitType(node.type.dtype, [&](auto tag) {
    decltype(tag) value;
    std::memcpy(&value, node.data.data() + index * sizeof(value), sizeof(value));
    result = kernels::SaturateCast<To>(value);
  });
  return result;
}

// Whether `From` values of a constant are exactly what the type holds: -1 for uint8 is a slip, not
// a wish to saturate.
template <typename T, typename From>
bool Representable(From value) {
  if constexpr (std::is_floating_point_v<T>) return true;
  return static_cast<From>(kernels::SaturateCast<T>(value)) == value;
}

template <typename From>
absl::StatusOr<std::vector<uint8_t>> Convert(const std::string& name, DType dtype,
                                             const std::vector<From>& values) {
  std::vector<uint8_t> data;
  absl::Status status;
  const bool known = VisitType(dtype, [&](auto tag) {
    using T = decltype(tag);
    data.resize(values.size() * sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      if (!Representable<T>(values[i]) && status.ok()) {
        status = absl::InvalidArgumentError(absl::StrCat("constant \"", name, "\": ", values[i],
                                                         " is no value of ",
                                                         std::string(DTypeName(dtype))));
      }
      const T value = kernels::SaturateCast<T>(values[i]);
      std::memcpy(data.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  if (!status.ok()) return status;
  if (!known) {
    return absl::InvalidArgumentError(absl::StrCat("constant \"", name, "\": no constants of type ",
                                                   std::string(DTypeName(dtype))));
  }
  return data;
}

}  // namespace

absl::StatusOr<const Node*> MakeConstant(Graph& graph, const NamedConstant& constant) {
  TensorType type;
  type.dtype = constant.dtype;
  if (!constant.bytes.empty()) {
    type.shape = constant.shape;
    return graph.Constant(type, constant.bytes, /*weak=*/false);
  }
  const bool floating = !constant.float_values.empty();
  const size_t count = floating ? constant.float_values.size() : constant.int_values.size();
  if (floating && !constant.int_values.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("constant \"", constant.name, "\": expected value or int_value, found both"));
  }
  if (count == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("constant \"", constant.name, "\": expected a value, found none"));
  }
  bool weak = false;
  if (constant.has_shape) {
    type.shape = constant.shape;
  } else if (count > 1) {
    type.shape = {static_cast<int64_t>(count)};
  }
  if (NumElements(type.shape) != static_cast<int64_t>(count)) {
    return absl::InvalidArgumentError(absl::StrCat("constant \"", constant.name, "\": expected ",
                                                   ShapeToString(type.shape), " values, found ",
                                                   count));
  }
  if (type.dtype == DType::kInvalid) {
    weak = type.shape.empty();
    type.dtype = floating ? DType::kFloat64 : DType::kInt64;
  }
  auto data = floating ? Convert(constant.name, type.dtype, constant.float_values)
                       : Convert(constant.name, type.dtype, constant.int_values);
  if (!data.ok()) return data.status();
  return graph.Constant(type, std::move(*data), weak);
}

double ScalarValue(const Node& node) { return ReadScalar<double>(node, 0); }

int64_t ScalarInteger(const Node& node) { return ReadScalar<int64_t>(node, 0); }

std::vector<int64_t> ConstantIntegers(const Node& node) {
  std::vector<int64_t> values(node.elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = ReadScalar<int64_t>(node, i);
  return values;
}

bool FitsInteger(const Node& node, DType dtype) {
  bool fits = false;
  VisitType(dtype, [&](auto tag) {
    using T = decltype(tag);
    fits = node.type.dtype == DType::kUint64 ? Representable<T>(ReadScalar<uint64_t>(node, 0))
                                             : Representable<T>(ReadScalar<int64_t>(node, 0));
  });
  return fits;
}

std::string IntegerText(const Node& node) {
  return node.type.dtype == DType::kUint64 ? absl::StrCat(ReadScalar<uint64_t>(node, 0))
                                           : absl::StrCat(ReadScalar<int64_t>(node, 0));
}

}  // namespace penstock::expr
