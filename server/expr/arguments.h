// What functions expect of their arguments: constants of a kind, and images.
//
// Threads:  safe from any thread; used while a program is compiled.
// Errors:   InvalidArgument that begins with the argument's name: "k: expected ..., found ...".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/expr/function.h"

namespace penstock::expr {

absl::Status WrongArgument(std::string_view name, std::string_view expected);

// Each leaves `value` alone when the argument is absent.
absl::Status ReadConstant(const Argument& argument, std::string_view name, int64_t low,
                          int64_t high, int64_t* value);
// A finite number, integers included.
absl::Status ReadConstant(const Argument& argument, std::string_view name, double* value);
// The same, in which an integer keeps all of its bits.
using ExactNumber = std::variant<int64_t, double>;
absl::Status ReadConstant(const Argument& argument, std::string_view name, ExactNumber* value);
// [low, high], two finite numbers in rising order within the limits.
absl::Status ReadRange(const Argument& argument, std::string_view name, double least,
                       double greatest, double* low, double* high);
// [a, b, …], as many finite numbers as `numbers` has.
absl::Status ReadNumbers(const Argument& argument, std::string_view name,
                         absl::Span<double> numbers);
absl::Status ReadConstant(const Argument& argument, std::string_view name, bool* value);
absl::Status ReadConstant(const Argument& argument, std::string_view name, std::string* value);

// [height, width], each of 1 to kImageSideMax.
absl::Status ReadSize(const Argument& argument, std::string_view name, int64_t* height,
                      int64_t* width);
// A shape of known sizes, of at most kMaxRowElements elements; [] is a scalar's.
absl::Status ReadShape(const Argument& argument, std::string_view name, Shape* shape);

// Where a random function draws from.
DrawSource ReadDraws(const Argument& seed);

// A tensor of three axes, (height, width, channels), of one of the dtypes; none means of any
// numbers or flags.
absl::Status CheckImage(const Argument& argument, std::initializer_list<DType> dtypes = {});

// Refuses a result of more than kMaxRowElements elements: sizes that only the data tells have met
// no check before. REQUIRES: each size is below 2^31.
absl::Status CheckElements(int64_t height, int64_t width, int64_t channels);
// Whether a shape is within the same limit, in which an axis without elements counts as one of one:
// kernels go through the others, however little there is. Sizes that only the data tells count so,
// too.
bool FitsRow(const Shape& shape);
// The number of elements of a result that fits a row. REQUIRES: all sizes are known.
absl::StatusOr<int64_t> CountElements(const Shape& shape);

// The first error of several.
absl::Status FirstError(std::initializer_list<absl::Status> statuses);

// The most pixels that a side may have.
inline constexpr int64_t kImageSideMax = 1 << 20;

}  // namespace penstock::expr
