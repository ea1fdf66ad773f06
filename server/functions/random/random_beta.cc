#include "absl/strings/str_cat.h"
#include "server/expr/beta_draws.h"
#include "server/expr/drawn_numbers.h"

namespace penstock::expr {
namespace {

absl::Status ReadConcentration(const Argument& argument, const char* name, double* value) {
  if (absl::Status status = ReadConstant(argument, name, value); !status.ok()) return status;
  if (*value >= 0.01 && *value <= 1000) return absl::OkStatus();
  return WrongArgument(name, absl::StrCat("a constant of 0.01 to 1000, found ", *value));
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double a = 1, b = 1;
  if (const absl::Status status = FirstError(
          {ReadConcentration(arguments[0], "a", &a), ReadConcentration(arguments[1], "b", &b)});
      !status.ok()) {
    return status;
  }
  return BindDrawnFloats(arguments, 2, 3, [=](Draws& draws) { return DrawBeta(draws, a, b); });
}

const RowFunctionRegistration kRegistration({
    .name = "random_beta",
    .signature = "random_beta(a=1, b=1, shape=None, dtype=\"float32\", seed=None)",
    .doc = "Numbers of a beta distribution, as numpy.random.Generator.beta gives them: how much of "
           "each of two elements mixup takes.\n"
           "\n"
           "a, b: constants of 0.01 to 1000; a = b = 1 is even.\n"
           "shape: a list of constants, or of integers of the data; left out: a scalar.\n"
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
