#include "server/engine/read/arrow_features.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/float16.h"
#include "server/codec/feature_limits.h"
#include "server/codec/wire.h"

namespace penstock {
namespace {

// The axes as the column has them.
Shape ShapeOf(const ArrowColumn& column) {
  Shape shape;
  for (const ArrowLevel& level : column.levels) {
    if (level.kind == ArrowLevel::Kind::kList) shape.push_back(kUnknownSize);
    if (level.kind == ArrowLevel::Kind::kFixedList) shape.push_back(level.size);
  }
  return shape;
}

absl::Status ReadShape(const v1::ArrowFeature& spec, ArrowFeature* feature) {
  const Shape own = ShapeOf(feature->column);
  Shape& shape = feature->type.shape;
  shape.assign(spec.shape().begin(), spec.shape().end());
  if (shape.empty()) shape = own;
  if (shape.size() != own.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape: expected a size for each of the column's ", own.size(),
                     " lists in each other, found ", ShapeToString(shape)));
  }
  for (size_t axis = 0; axis < own.size(); ++axis) {
    if (own[axis] != kUnknownSize && shape[axis] != kUnknownSize && own[axis] != shape[axis]) {
      return absl::InvalidArgumentError(absl::StrCat("shape: expected ", ShapeToString(own),
                                                     ", as the column has it, found ",
                                                     ShapeToString(shape)));
    }
  }
  while (feature->list_axes < shape.size() && shape[feature->list_axes] == kUnknownSize)
    ++feature->list_axes;
  const Shape known(shape.begin() + feature->list_axes, shape.end());
  const std::optional<int64_t> values = NumElements(known);
  if (!values || *values < 1 || *values > kMaxValues ||
      std::any_of(known.begin(), known.end(), [](int64_t size) { return size < 1; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape: expected sizes of -1, then sizes of at least 1 with at most ",
                     kMaxValues, " values, found ", ShapeToString(shape),
                     spec.shape().empty() ? ", as the column has it: declare it" : ""));
  }
  if (feature->list_axes > kArrowListAxesMax) {
    return absl::InvalidArgumentError(absl::StrCat("shape: expected at most ", kArrowListAxesMax,
                                                   " sizes of -1, found ", feature->list_axes));
  }
  feature->row_values = static_cast<size_t>(*values);
  if (feature->list_axes > 1) feature->type.form = RowForm::kPackedRagged;
  return absl::OkStatus();
}

template <typename T>
absl::Status PutNumber(int64_t value, ArrowFeature* feature) {
  const bool fits = std::numeric_limits<T>::is_signed
                        ? static_cast<int64_t>(static_cast<T>(value)) == value
                        : value >= 0 && static_cast<uint64_t>(static_cast<T>(value)) ==
                                            static_cast<uint64_t>(value);
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "default_value: expected a value of ", DTypeName(feature->type.dtype), ", found ", value));
  }
  const T number = static_cast<T>(value);
  feature->default_value.emplace(reinterpret_cast<const char*>(&number), sizeof(number));
  return absl::OkStatus();
}

template <typename T>
void PutBytes(T number, ArrowFeature* feature) {
  feature->default_value.emplace(reinterpret_cast<const char*>(&number), sizeof(number));
}

absl::Status ReadDefault(const v1::JsonFeature::DefaultValue& value, ArrowFeature* feature) {
  const DType dtype = feature->type.dtype;
  const int all =
      value.ints_size() + value.floats_size() + value.strings_size() + value.bools_size();
  // A whole number may stand for a floating point one.
  const bool is_whole = value.ints_size() == 1;
  const int fitting = dtype == DType::kString ? value.strings_size()
                      : dtype == DType::kBool ? value.bools_size()
                      : IsFloating(dtype)     ? value.floats_size() + value.ints_size()
                                              : value.ints_size();
  if (all != 1 || fitting != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("default_value: expected one value of ", DTypeName(dtype), ", found ",
                     all == 1 ? "one of another type" : absl::StrCat(all, " values")));
  }
  double real = 0;
  if (IsFloating(dtype)) real = is_whole ? static_cast<double>(value.ints(0)) : value.floats(0);
  switch (dtype) {
    case DType::kString:
      feature->default_value = value.strings(0);
      return absl::OkStatus();
    case DType::kBool:
      PutBytes(value.bools(0), feature);
      return absl::OkStatus();
    case DType::kFloat16:
      PutBytes(Float16FromDouble(real), feature);
      return absl::OkStatus();
    case DType::kFloat32:
      PutBytes(static_cast<float>(real), feature);
      return absl::OkStatus();
    case DType::kFloat64:
      PutBytes(real, feature);
      return absl::OkStatus();
    case DType::kInt8:
      return PutNumber<int8_t>(value.ints(0), feature);
    case DType::kUint8:
      return PutNumber<uint8_t>(value.ints(0), feature);
    case DType::kInt16:
      return PutNumber<int16_t>(value.ints(0), feature);
    case DType::kUint16:
      return PutNumber<uint16_t>(value.ints(0), feature);
    case DType::kInt32:
      return PutNumber<int32_t>(value.ints(0), feature);
    case DType::kUint32:
      return PutNumber<uint32_t>(value.ints(0), feature);
    case DType::kInt64:
      return PutNumber<int64_t>(value.ints(0), feature);
    default:
      return PutNumber<uint64_t>(value.ints(0), feature);
  }
}

absl::Status ReadIsNull(const v1::ArrowFeature& spec, const ArrowSchema& schema,
                        ArrowFeature* feature) {
  if (!spec.dtype().empty() || !spec.shape().empty() || spec.has_default_value() ||
      spec.allow_missing()) {
    return absl::InvalidArgumentError(
        "is_null: expected neither dtype, shape, default_value nor allow_missing beside it");
  }
  absl::StatusOr<ArrowColumn> column = FindArrowColumn(schema, feature->path, /*to_values=*/false);
  if (!column.ok()) return column.status();
  if (column->num_lists() > 0) {
    return absl::InvalidArgumentError("is_null: expected a column that is not inside of a list");
  }
  feature->column = *std::move(column);
  feature->is_null = true;
  feature->type.dtype = DType::kBool;
  return absl::OkStatus();
}

absl::Status Read(const v1::ArrowFeature& spec, const ArrowSchema& schema, ArrowFeature* feature) {
  absl::StatusOr<std::vector<std::string>> path =
      ParseArrowPath(spec.has_column() ? spec.column() : spec.name());
  if (!path.ok())
    return absl::InvalidArgumentError(absl::StrCat("column: ", path.status().message()));
  feature->path = *std::move(path);
  if (spec.is_null()) return ReadIsNull(spec, schema, feature);
  absl::StatusOr<ArrowColumn> column = FindArrowColumn(schema, feature->path, /*to_values=*/true);
  if (!column.ok()) return column.status();
  feature->column = *std::move(column);
  feature->type.dtype = feature->column.dtype;
  if (!spec.dtype().empty() && DTypeFromName(spec.dtype()) != feature->type.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype: expected ", DTypeName(feature->type.dtype), ", as the column holds (",
                     feature->column.type_name, "), found \"", spec.dtype(),
                     "\"; `map` casts it behind the source"));
  }
  absl::Status status = ReadShape(spec, feature);
  if (status.ok() && spec.has_default_value()) status = ReadDefault(spec.default_value(), feature);
  if (!status.ok()) return status;
  feature->allow_missing = spec.allow_missing();
  if (feature->allow_missing && feature->list_axes == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "allow_missing: is for lists of any size (-1), which are then empty; found shape ",
        ShapeToString(feature->type.shape), ", whose value can have a default_value"));
  }
  return absl::OkStatus();
}

// All columns of the schema, as features would ask for them.
absl::StatusOr<google::protobuf::RepeatedPtrField<v1::ArrowFeature>> AllOf(
    const ArrowSchema& schema) {
  google::protobuf::RepeatedPtrField<v1::ArrowFeature> all;
  for (const std::vector<std::string>& path : ArrowPaths(schema)) {
    const std::string text = ArrowPath(path);
    if (!wire::IsUtf8(text)) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", all.size(), " has a name that is not UTF-8: list the features"));
    }
    v1::ArrowFeature& feature = *all.Add();
    feature.set_column(text);
    // Without the backslashes: what it is called is no path.
    for (const std::string& name : path) {
      if (!feature.name().empty()) feature.mutable_name()->push_back('.');
      feature.mutable_name()->append(name);
    }
  }
  return all;
}

}  // namespace

absl::StatusOr<std::vector<ArrowFeature>> PlanArrowFeatures(
    const google::protobuf::RepeatedPtrField<v1::ArrowFeature>& wanted, const ArrowSchema& schema) {
  absl::StatusOr<google::protobuf::RepeatedPtrField<v1::ArrowFeature>> all = wanted;
  if (wanted.empty()) all = AllOf(schema);
  if (!all.ok()) return all.status();
  if (all->empty() || all->size() > kMaxFeatures) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected 1 to ", kMaxFeatures,
                     wanted.empty() ? " columns in the first file, found " : " features, found ",
                     all->size(), all->empty() ? "" : ": list those that are wanted"));
  }
  std::vector<ArrowFeature> features;
  std::set<std::string> names;
  for (const v1::ArrowFeature& spec : *all) {
    ArrowFeature& feature = features.emplace_back();
    feature.name = spec.name();
    if (feature.name.empty()) return absl::InvalidArgumentError("a feature has no name");
    const auto wrong = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat(
          "feature \"", feature.name, "\": ", what,
          wanted.empty() ? " (no feature is listed, so that every column is one)" : ""));
    };
    if (!names.insert(feature.name).second) return wrong("is listed twice");
    if (absl::Status status = Read(spec, schema, &feature); !status.ok())
      return wrong(status.message());
  }
  return features;
}

absl::StatusOr<std::vector<ArrowColumn>> ArrowColumnsOf(const std::vector<ArrowFeature>& features,
                                                        const ArrowSchema& schema) {
  std::vector<ArrowColumn> columns;
  for (const ArrowFeature& feature : features) {
    absl::StatusOr<ArrowColumn> column = FindArrowColumn(schema, feature.path, !feature.is_null);
    if (!column.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("feature \"", feature.name, "\": ", column.status().message()));
    }
    if (!column->IsLike(feature.column)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "feature \"", feature.name, "\": the column is of another type than in the first file: ",
          column->type_name, " in ", column->num_lists(), " lists, expected ",
          feature.column.type_name, " in ", feature.column.num_lists(),
          column->type_name == feature.column.type_name ? ", with offsets and sizes as there"
                                                        : ""));
    }
    columns.push_back(*std::move(column));
  }
  return columns;
}

}  // namespace penstock
