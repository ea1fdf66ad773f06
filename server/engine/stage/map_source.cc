#include "server/engine/stage/map_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/spec/constant_file.h"

namespace penstock {
namespace {

// `resolved`: the same one, in the plan's own spec.
absl::StatusOr<expr::NamedConstant> ToConstant(const v1::Constant& constant, FileSystem& files,
                                               v1::Constant* resolved) {
  expr::NamedConstant result;
  result.name = constant.name();
  if (constant.name().empty()) return absl::InvalidArgumentError("a constant has no name");
  const int given = !constant.value().empty() + !constant.int_value().empty() +
                    !constant.string_value().empty() + !constant.npy().empty() +
                    !constant.text_line().empty();
  if (given != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("constant ", constant.name(),
                     ": expected one of value, int_value, string_value, npy and text_line, found ",
                     given == 0 ? "none" : "several"));
  }
  if (!constant.npy().empty() || !constant.text_line().empty()) {
    const absl::Status status = ReadConstantFile(constant, files, &result, resolved);
    if (status.ok()) return result;
    return absl::Status(status.code(),
                        absl::StrCat("constant ", constant.name(), ": ", status.message()));
  }
  const bool is_string = !constant.string_value().empty();
  if (is_string) result.dtype = DType::kString;
  if (!constant.dtype().empty()) {
    const std::optional<DType> dtype = DTypeFromName(constant.dtype());
    if (!dtype || (*dtype == DType::kString) != is_string) {
      return absl::InvalidArgumentError(
          absl::StrCat("constant ", constant.name(), ": dtype: expected ",
                       is_string ? "string" : "a number's type such as float32", ", found \"",
                       constant.dtype(), "\""));
    }
    result.dtype = *dtype;
  }
  result.has_shape = !constant.shape().empty();
  result.shape.assign(constant.shape().begin(), constant.shape().end());
  result.float_values.assign(constant.value().begin(), constant.value().end());
  result.int_values.assign(constant.int_value().begin(), constant.int_value().end());
  result.strings.assign(constant.string_value().begin(), constant.string_value().end());
  if (is_string && !result.has_shape && constant.string_value_size() > 1) {
    result.has_shape = true;
    result.shape = {constant.string_value_size()};
  }
  if (result.has_shape) {
    const std::optional<int64_t> count = NumElements(result.shape);
    const int64_t found =
        result.float_values.size() + result.int_values.size() + result.strings.size();
    if (!count || *count != found) {
      return absl::InvalidArgumentError(
          absl::StrCat("constant ", constant.name(), ": expected as many values as the shape ",
                       ShapeToString(result.shape), " holds, found ", found));
    }
  }
  return result;
}

}  // namespace

absl::StatusOr<expr::MapSource> ReadMapSource(
    const google::protobuf::RepeatedPtrField<v1::Constant>& constants,
    const google::protobuf::RepeatedPtrField<std::string>& lets, PlanBuilder& plan) {
  expr::MapSource source;
  source.stage = plan.stage();
  source.batched = plan.batched();
  source.files = &plan.files();
  source.lets.assign(lets.begin(), lets.end());
  const std::vector<v1::Constant*> resolved = ConstantsOf(plan.stage_spec());
  for (int i = 0; i < constants.size(); ++i) {
    absl::StatusOr<expr::NamedConstant> converted =
        ToConstant(constants[i], plan.files(), resolved[i]);
    if (!converted.ok()) return converted.status();
    source.constants.push_back(*std::move(converted));
  }
  return source;
}

}  // namespace penstock
