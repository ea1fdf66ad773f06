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

// Those of a list of constants; none where it is something else.
std::vector<double> Numbers(const Argument& argument) {
  if (const auto* const integers = Find<std::vector<int64_t>>(argument))
    return {integers->begin(), integers->end()};
  const auto* const given = Find<std::vector<double>>(argument);
  return given == nullptr ? std::vector<double>() : *given;
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

absl::Status ReadConstant(const Argument& argument, std::string_view name, ExactNumber* value) {
  if (!argument.given) return absl::OkStatus();
  if (const auto* const integer = Find<int64_t>(argument)) {
    *value = *integer;
    return absl::OkStatus();
  }
  double number = 0;
  absl::Status status = ReadConstant(argument, name, &number);
  if (status.ok()) *value = number;
  return status;
}

absl::Status ReadRange(const Argument& argument, std::string_view name, double least,
                       double greatest, double* low, double* high) {
  if (!argument.given) return absl::OkStatus();
  const std::vector<double> numbers = Numbers(argument);
  if (numbers.size() != 2 || !(numbers[0] >= least) || !(numbers[1] <= greatest) ||
      !(numbers[0] <= numbers[1])) {
    return WrongArgument(name, absl::StrCat("[low, high], two constants of ", least, " to ",
                                            greatest, " in rising order"));
  }
  *low = numbers[0];
  *high = numbers[1];
  return absl::OkStatus();
}

absl::Status ReadNumbers(const Argument& argument, std::string_view name,
                         absl::Span<double> numbers) {
  if (!argument.given) return absl::OkStatus();
  const std::vector<double> found = Numbers(argument);
  if (found.size() != numbers.size() ||
      !std::all_of(found.begin(), found.end(), [](double x) { return std::isfinite(x); })) {
    return WrongArgument(name,
                         absl::StrCat("a list of ", numbers.size(), " finite numbers, constants"));
  }
  std::copy(found.begin(), found.end(), numbers.begin());
  return absl::OkStatus();
}

absl::Status ReadSize(const Argument& argument, std::string_view name, int64_t* height,
                      int64_t* width) {
  const auto* const sides = Find<std::vector<int64_t>>(argument);
  if (sides == nullptr || sides->size() != 2 || (*sides)[0] < 1 || (*sides)[1] < 1 ||
      (*sides)[0] > kImageSideMax || (*sides)[1] > kImageSideMax) {
    return WrongArgument(name, "a list of two positive constants, [height, width]");
  }
  *height = (*sides)[0];
  *width = (*sides)[1];
  return absl::OkStatus();
}

absl::Status ReadShape(const Argument& argument, std::string_view name, Shape* shape) {
  shape->clear();
  if (const auto* const sides = Find<std::vector<int64_t>>(argument)) {
    shape->assign(sides->begin(), sides->end());
  } else if (argument.type.shape != Shape{0}) {
    return WrongArgument(name, "a list of constant integers");
  }
  bool fits = true;
  for (const int64_t size : *shape) fits = fits && size >= 1;
  const auto elements = NumElements(*shape);
  if (fits && elements && *elements <= kMaxRowElements) return absl::OkStatus();
  return WrongArgument(name, absl::StrCat("positive sizes of at most ", kMaxRowElements,
                                          " elements in all, found ", ShapeToString(*shape)));
}

DrawSource ReadDraws(const Argument& seed) {
  return seed.draws == nullptr ? DrawSource{} : *seed.draws;
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
  const bool several = fits && type.shape.size() == 4;
  return WrongArgument(
      "image",
      absl::StrCat(expected, " of shape (height, width, channels), found ", TypeToString(type),
                   several ? "; of several images each is given by itself, image[0], and "
                             "stack joins what becomes of them"
                           : ""));
}

absl::Status CheckElements(int64_t height, int64_t width, int64_t channels) {
  if (height * width == 0 || channels <= kMaxRowElements / (height * width)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("result larger than limit: ", height, " x ", width, " x ",
                                          channels, " > ", kMaxRowElements, " elements"));
}

bool FitsRow(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size > 1 && __builtin_mul_overflow(elements, size, &elements)) return false;
  }
  return elements <= kMaxRowElements;
}

absl::StatusOr<int64_t> CountElements(const Shape& shape) {
  if (FitsRow(shape)) return *NumElements(shape);
  return absl::DataLossError(absl::StrCat("result larger than limit: ", ShapeToString(shape), " > ",
                                          kMaxRowElements, " elements"));
}

absl::Status FirstError(std::initializer_list<absl::Status> statuses) {
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace penstock::expr
