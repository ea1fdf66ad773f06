#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/expr/data_integers.h"

namespace penstock::expr {
namespace {

constexpr int64_t kBoundMax = int64_t{1} << 61;

// As many numbers as lie from `start` on in front of `stop`.
int64_t Count(int64_t start, int64_t stop, int64_t step) {
  const int64_t way = step > 0 ? stop - start : start - stop;
  const int64_t each = step > 0 ? step : -step;
  return way <= 0 ? 0 : (way - 1) / each + 1;
}

class Arange final : public RowKernel {
 public:
  // `bounds`: start, stop and step.
  explicit Arange(DataIntegers bounds) : bounds_(std::move(bounds)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    IntegersRead bounds;
    if (absl::Status status = bounds_.Read(arguments, &bounds); !status.ok()) return status;
    const int64_t step = bounds[2];
    if (step == 0) return absl::DataLossError("arange: expected a step that is not 0");
    const Shape shape = {Count(bounds[0], bounds[1], step)};
    const auto elements = CountElements(shape);
    if (!elements.ok()) return elements.status();
    if (!bounds_.all_constant()) out.SetShape(shape);
    constexpr int64_t kTileElements = 1024;
    int64_t value = bounds[0];
    for (int64_t done = 0; done < *elements; done += kTileElements) {
      const int64_t count = std::min(kTileElements, *elements - done);
      uint8_t* const to = out.Reserve(static_cast<size_t>(count) * sizeof(int64_t));
      for (int64_t i = 0; i < count; ++i, value += step)
        std::memcpy(to + static_cast<size_t>(i) * sizeof(value), &value, sizeof(value));
      out.Commit();
    }
    return absl::OkStatus();
  }

 private:
  const DataIntegers bounds_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  // What is left out; one argument is the end.
  static const Literal kZero = int64_t{0}, kOne = int64_t{1};
  const bool has_start = arguments[1].given;
  const std::array<int, 3> places = {0, has_start ? 1 : 0, 2};
  std::array<Argument, 3> ordered = {arguments[places[0]], arguments[places[1]],
                                     arguments[places[2]]};
  const auto constant = [](const Literal& literal) {
    Argument argument;
    argument.literal = &literal;
    return argument;
  };
  if (!has_start) ordered[0] = constant(kZero);
  if (!ordered[2].given) ordered[2] = constant(kOne);
  DataIntegers bounds;
  if (const absl::Status status =
          FirstError({bounds.Add(ordered, 0, "start", -kBoundMax, kBoundMax),
                      bounds.Add(ordered, 1, "stop", -kBoundMax, kBoundMax),
                      bounds.Add(ordered, 2, "step", -kBoundMax, kBoundMax)});
      !status.ok()) {
    return status;
  }
  if (bounds.constant(2) == 0) return WrongArgument("step", "an integer that is not 0");
  BoundRowFunction bound;
  bound.type = {DType::kInt64, {kUnknownSize}};
  if (bounds.all_constant()) {
    bound.type.shape[0] = Count(*bounds.constant(0), *bounds.constant(1), *bounds.constant(2));
    if (bound.type.shape[0] == 0) return WrongArgument("stop", "a constant after start");
  }
  for (const int position : bounds.positions()) bound.tensor_arguments.push_back(places[position]);
  // As many as the data tells behind `batch` are one tensor.
  bound.takes_all_axes = !bounds.all_constant();
  bound.kernel = std::make_shared<Arange>(std::move(bounds));
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "arange",
    .signature = "arange(start, stop=None, step=1)",
    .doc = "The integers from start to before stop, step apart, as numpy.arange and tf.range "
           "give them: int64. arange(shape(tokens)[0]) are the places of a list whose length only "
           "the data tells.\n"
           "\n"
           "start: of a lone argument the end; it then begins with 0.\n"
           "start, stop, step: constants, or integers of the data, of which the result's size "
           "comes then. A step of the data that is 0 is an error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
