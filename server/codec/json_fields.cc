#include "server/codec/json_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codec/feature_limits.h"

namespace penstock {
namespace {

absl::Status ReadPath(const v1::JsonFeature& spec, JsonField* field) {
  const std::string& path = spec.has_path() ? spec.path() : spec.name();
  absl::StatusOr<std::vector<JsonStep>> steps = ParseJsonPath(path);
  if (!steps.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("path \"", path, "\": ", steps.status().message()));
  }
  field->steps = *std::move(steps);
  return absl::OkStatus();
}

// The shape, and the lists that the path does not name.
absl::Status ReadShape(const v1::JsonFeature& spec, JsonField* field) {
  field->shape.assign(spec.shape().begin(), spec.shape().end());
  while (field->list_axes < field->shape.size() && field->shape[field->list_axes] == kUnknownSize)
    ++field->list_axes;
  Shape known(field->shape.begin() + field->list_axes, field->shape.end());
  const std::optional<int64_t> values = NumElements(known);
  if (!values || *values < 1 || *values > kMaxValues ||
      std::any_of(known.begin(), known.end(), [](int64_t size) { return size < 1; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape: expected sizes of -1, then sizes of at least 1 with at most ",
                     kMaxValues, " values, found ", ShapeToString(field->shape)));
  }
  if (field->list_axes > JsonField::kListAxesMax) {
    return absl::InvalidArgumentError(absl::StrCat("shape: expected at most ",
                                                   JsonField::kListAxesMax, " sizes of -1, found ",
                                                   field->list_axes));
  }
  field->row_values = *values;
  const size_t each =
      std::count_if(field->steps.begin(), field->steps.end(),
                    [](const JsonStep& step) { return step.kind == JsonStep::Kind::kEach; });
  if (each > field->shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat("shape: expected an axis for each of the ", each,
                                                   " [] in the path, found ",
                                                   ShapeToString(field->shape)));
  }
  for (size_t i = each; i < field->shape.size(); ++i)
    field->steps.push_back({JsonStep::Kind::kEach, "", 0});
  if (field->steps.size() > JsonStep::kStepsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("path: expected at most ", JsonStep::kStepsMax, " steps, found more"));
  }
  return absl::OkStatus();
}

absl::Status ReadForm(const v1::JsonFeature& spec, bool batched, JsonField* field) {
  field->type.shape = field->shape;
  switch (spec.form()) {
    case v1::JsonFeature::LIST:
      if (field->list_axes > 1) {
        field->type.form = RowForm::kPackedRagged;
      } else if (field->list_axes == 1 && batched) {
        field->type.form = RowForm::kRagged;
      }
      return absl::OkStatus();
    case v1::JsonFeature::SPARSE:
      if (field->shape != Shape{kUnknownSize}) {
        return absl::InvalidArgumentError(absl::StrCat(
            "form: SPARSE is of shape [-1]; found shape ", ShapeToString(field->shape)));
      }
      field->type.form = RowForm::kSparse;
      return absl::OkStatus();
    case v1::JsonFeature::PADDED:
      if (field->list_axes != 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "form: PADDED has one size of -1; found shape ", ShapeToString(field->shape)));
      }
      field->pads = true;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("form: expected LIST, SPARSE or PADDED, found ", spec.form()));
  }
}

template <typename T, typename Values>
absl::Status PutNumbers(const Values& values, JsonField* field) {
  for (const auto value : values) {
    const T number = static_cast<T>(value);
    const bool fits = std::numeric_limits<T>::is_integer
                          ? static_cast<decltype(value)>(number) == value
                          : std::isfinite(number) == std::isfinite(value);
    if (!fits)
      return absl::InvalidArgumentError(absl::StrCat(
          "default_value: expected a value of ", DTypeName(field->type.dtype), ", found ", value));
    const auto* bytes = reinterpret_cast<const uint8_t*>(&number);
    field->default_numbers.insert(field->default_numbers.end(), bytes, bytes + sizeof(number));
  }
  return absl::OkStatus();
}

absl::Status ReadDefault(const v1::JsonFeature::DefaultValue& value, JsonField* field) {
  const int all =
      value.ints_size() + value.floats_size() + value.strings_size() + value.bools_size();
  int fitting = 0;
  absl::Status status;
  switch (field->type.dtype) {
    case DType::kBool:
      fitting = value.bools_size();
      status = PutNumbers<bool>(value.bools(), field);
      break;
    case DType::kInt32:
      fitting = value.ints_size();
      status = PutNumbers<int32_t>(value.ints(), field);
      break;
    case DType::kInt64:
      fitting = value.ints_size();
      status = PutNumbers<int64_t>(value.ints(), field);
      break;
    case DType::kFloat32:
      fitting = value.floats_size();
      status = PutNumbers<float>(value.floats(), field);
      break;
    case DType::kFloat64:
      fitting = value.floats_size();
      status = PutNumbers<double>(value.floats(), field);
      break;
    default:
      fitting = value.strings_size();
      field->default_strings.assign(value.strings().begin(), value.strings().end());
      break;
  }
  if (!status.ok()) return status;
  if (all != fitting) {
    return absl::InvalidArgumentError(absl::StrCat("default_value: expected values of ",
                                                   DTypeName(field->type.dtype), ", found others"));
  }
  if (fitting != 1 && static_cast<size_t>(fitting) != field->row_values) {
    return absl::InvalidArgumentError(absl::StrCat("default_value: expected 1 or ",
                                                   field->row_values, " values, found ", fitting));
  }
  return absl::OkStatus();
}

absl::Status Read(const v1::JsonFeature& spec, bool batched, JsonField* field) {
  const std::optional<DType> dtype = DTypeFromName(spec.dtype());
  if (!dtype ||
      (*dtype != DType::kBool && *dtype != DType::kInt32 && *dtype != DType::kInt64 &&
       *dtype != DType::kFloat32 && *dtype != DType::kFloat64 && *dtype != DType::kString)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype: expected bool, int32, int64, float32, float64 or string, found \"",
                     spec.dtype(), "\""));
  }
  field->type.dtype = *dtype;
  absl::Status status = ReadPath(spec, field);
  if (status.ok()) status = ReadShape(spec, field);
  if (status.ok()) status = ReadForm(spec, batched, field);
  if (status.ok() && spec.has_default_value()) status = ReadDefault(spec.default_value(), field);
  if (!status.ok()) return status;
  field->allow_missing = spec.allow_missing();
  field->refuse_null = spec.refuse_null();
  field->from_text = spec.from_text();
  if (field->allow_missing && field->list_axes == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "allow_missing: is for lists of any size (-1), which are then empty; found shape ",
        ShapeToString(field->shape), ", whose value can have a default_value"));
  }
  if (field->pads) {
    const size_t size = DTypeSize(*dtype);
    if (!field->default_strings.empty()) field->padding = field->default_strings[0];
    if (*dtype != DType::kString) field->padding.assign(size, '\0');
    if (!field->default_numbers.empty())
      field->padding.assign(field->default_numbers.begin(), field->default_numbers.begin() + size);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JsonErrors> JsonErrorsFromName(const std::string& name) {
  if (name.empty() || name == "strict") return JsonErrors::kStrict;
  if (name == "replace") return JsonErrors::kReplace;
  return absl::InvalidArgumentError(
      absl::StrCat("errors: expected \"strict\" or \"replace\", found \"", name, "\""));
}

absl::StatusOr<std::vector<JsonField>> PlanJsonFields(
    const google::protobuf::RepeatedPtrField<v1::JsonFeature>& features, bool batched) {
  if (features.empty() || features.size() > kMaxFeatures) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected 1 to ", kMaxFeatures, " features, found ", features.size()));
  }
  std::vector<JsonField> fields;
  std::set<std::string> names;
  for (const v1::JsonFeature& spec : features) {
    JsonField& field = fields.emplace_back();
    field.name = spec.name();
    if (field.name.empty()) return absl::InvalidArgumentError("a feature has no name");
    const auto wrong = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("feature \"", field.name, "\": ", what));
    };
    if (!names.insert(field.name).second) return wrong("is listed twice");
    if (absl::Status status = Read(spec, batched, &field); !status.ok())
      return wrong(status.message());
  }
  return fields;
}

}  // namespace penstock
