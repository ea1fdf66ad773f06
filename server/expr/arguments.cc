#include "server/expr/arguments.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/expr/graph.h"

namespace penstock::expr {
namespace {

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

template <typename T>
const T* Find(const Argument& argument) {
  return argument.literal == nullptr ? nullptr : std::get_if<T>(argument.literal);
}

}  // namespace

absl::Status WrongArgument(std::string_view name, std::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(View(name), ": expected ", View(expected)));
}

absl::Status ReadConstant(const Argument& argument, std::string_view name, int64_t low,
                          int64_t high, int64_t* value) {
  if (!argument.given) return absl::OkStatus();
  const auto* const given = Find<int64_t>(argument);
  if (given == nullptr || *given < low || *given > high) {
    return WrongArgument(name,
                         absl::StrCat("an integer constant of ", low, " to ", high,
                                      given == nullptr ? "" : absl::StrCat(", found ", *given)));
  }
  *value = *given;
  return absl::OkStatus();
}

absl::Status ReadConstant(const Argument& argument, std::string_view name, double* value) {
  if (!argument.given) return absl::OkStatus();
  if (const auto* const integer = Find<int64_t>(argument)) {
    *value = static_cast<double>(*integer);
    return absl::OkStatus();
  }
  const auto* const given = Find<double>(argument);
  if (given == nullptr || !std::isfinite(*given)) {
    return WrongArgument(name, "a finite number as a constant");
  }
  *value = *given;
  return absl::OkStatus();
}

absl::Status ReadConstant(const Argument& argument, std::string_view name, bool* value) {
  if (!argument.given) return absl::OkStatus();
  const auto* const given = Find<bool>(argument);
  if (given == nullptr) return WrongArgument(name, "True or False");
  *value = *given;
  return absl::OkStatus();
}

absl::Status ReadConstant(const Argument& argument, std::string_view name, std::string* value) {
  if (!argument.given) return absl::OkStatus();
  const auto* const given = Find<std::string>(argument);
  if (given == nullptr) return WrongArgument(name, "a text in quotes");
  *value = *given;
  return absl::OkStatus();
}

absl::Status CheckImage(const Argument& argument, std::initializer_list<DType> dtypes) {
  const TensorType& type = argument.type;
  const bool fits = dtypes.size() == 0
                        ? type.dtype != DType::kString && type.dtype != DType::kInvalid
                        : std::find(dtypes.begin(), dtypes.end(), type.dtype) != dtypes.end();
  if (fits && type.shape.size() == 3) return absl::OkStatus();
  std::string expected;
  for (const DType dtype : dtypes) {
    absl::StrAppend(&expected, expected.empty() ? "" : ", ", DTypeName(dtype));
  }
  if (expected.empty()) expected = "numbers";
  return WrongArgument(
      "image",
      absl::StrCat(expected, " of shape (height, width, channels), found ", TypeToString(type)));
}

absl::Status CheckElements(int64_t height, int64_t width, int64_t channels) {
  if (height * width == 0 || channels <= kMaxRowElements / (height * width)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("result larger than limit: ", height, " x ", width, " x ",
                                          channels, " > ", kMaxRowElements, " elements"));
}

absl::Status FirstError(std::initializer_list<absl::Status> statuses) {
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace penstock::expr
