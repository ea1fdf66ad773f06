#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/expr/beta_draws.h"

namespace penstock::expr {
namespace {

constexpr int64_t kTileElements = 1024;

template <typename T>
class RandomBeta final : public RowKernel {
 public:
  RandomBeta(int64_t elements, double a, double b, DrawSource source)
      : elements_(elements), a_(a), b_(b), source_(std::move(source)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    Draws draws(source_, arguments[0]);
    for (int64_t start = 0; start < elements_; start += kTileElements) {
      const int64_t count = std::min(kTileElements, elements_ - start);
      uint8_t* const to = out.Reserve(static_cast<size_t>(count) * sizeof(T));
      for (int64_t i = 0; i < count; ++i) {
        const T value = static_cast<T>(DrawBeta(draws, a_, b_));
        std::memcpy(to + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
        if (start + i == 0)
          draws.Note(elements_ == 1 ? "value" : "first", static_cast<double>(value));
      }
      out.Commit();
    }
    return absl::OkStatus();
  }

 private:
  const int64_t elements_;
  const double a_;
  const double b_;
  const DrawSource source_;
};

absl::Status ReadConcentration(const Argument& argument, const char* name, double* value) {
  if (absl::Status status = ReadConstant(argument, name, value); !status.ok()) return status;
  if (*value >= 0.01 && *value <= 1000) return absl::OkStatus();
  return WrongArgument(name, absl::StrCat("a constant of 0.01 to 1000, found ", *value));
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  Shape shape;
  double a = 1, b = 1;
  std::string name = "float32";
  if (const absl::Status status = FirstError(
          {ReadConcentration(arguments[0], "a", &a), ReadConcentration(arguments[1], "b", &b),
           arguments[2].given ? ReadShape(arguments[2], "shape", &shape) : absl::OkStatus(),
           ReadConstant(arguments[3], "dtype", &name)});
      !status.ok()) {
    return status;
  }
  if (name != "float32" && name != "float64") {
    return WrongArgument("dtype", "\"float32\" or \"float64\"");
  }
  const bool single = name == "float32";
  const int64_t elements = *NumElements(shape);
  BoundRowFunction bound;
  if (single) {
    bound.kernel = std::make_shared<RandomBeta<float>>(elements, a, b, ReadDraws(arguments.back()));
  } else {
    bound.kernel =
        std::make_shared<RandomBeta<double>>(elements, a, b, ReadDraws(arguments.back()));
  }
  bound.type = {single ? DType::kFloat32 : DType::kFloat64, shape};
  bound.draws = true;
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "random_beta",
    .signature = "random_beta(a=1, b=1, shape=None, dtype=\"float32\", seed=None)",
    .doc = "Numbers of a beta distribution, as numpy.random.Generator.beta gives them: how much of "
           "each of two elements mixup takes.\n"
           "\n"
           "a, b: constants of 0.01 to 1000; a = b = 1 is even.\n"
           "shape: a list of constants; left out: a scalar.\n"
           "dtype: \"float32\" or \"float64\".\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "Of two gamma variables by G. Marsaglia and W. W. Tsang's method. The draw belongs to "
           "the element:\n"
           "it depends on seed, stage, epoch and the element's record, on nothing else. Calls of "
           "the same stage with the same seed draw\n"
           "alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
