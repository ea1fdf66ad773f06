#include <cmath>

#include "server/expr/drawn_numbers.h"
#include "server/kernels/power.h"

namespace penstock::expr {
namespace {

template <size_t kTerms>
double Polynomial(const double (&terms)[kTerms], double x) {
  double sum = terms[kTerms - 1];
  for (size_t i = kTerms - 1; i-- > 0;) sum = sum * x + terms[i];
  return sum;
}

// The value below which a standard normal variable lies with probability p, 0 < p < 1, to about
// 1e-16: PPND16 of Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution"
// (Applied Statistics 37, 1988), whose coefficients these are.
double NormalQuantile(double p) {
  static constexpr double kCentre[] = {3.3871328727963666080,   1.3314166789178437745e2,
                                       1.9715909503065514427e3, 1.3731693765509461125e4,
                                       4.5921953931549871457e4, 6.7265770927008700853e4,
                                       3.3430575583588128105e4, 2.5090809287301226727e3};
  static constexpr double kCentreBelow[] = {1.0,
                                            4.2313330701600911252e1,
                                            6.8718700749205790830e2,
                                            5.3941960214247511077e3,
                                            2.1213794301586595867e4,
                                            3.9307895800092710610e4,
                                            2.8729085735721942674e4,
                                            5.2264952788528545610e3};
  static constexpr double kMiddle[] = {1.42343711074968357734,    4.63033784615654529590,
                                       5.76949722146069140550,    3.64784832476320460504,
                                       1.27045825245236838258,    2.41780725177450611770e-1,
                                       2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kMiddleBelow[] = {1.0,
                                            2.05319162663775882187,
                                            1.67638483018380384940,
                                            6.89767334985100004550e-1,
                                            1.48103976427480074590e-1,
                                            1.51986665636164571966e-2,
                                            5.47593808499534494600e-4,
                                            1.05075007164441684324e-9};
  static constexpr double kTail[] = {6.65790464350110377720,    5.46378491116411436990,
                                     1.78482653991729133580,    2.96560571828504891230e-1,
                                     2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                     2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double kTailBelow[] = {1.0,
                                          5.99832206555887937690e-1,
                                          1.36929880922735805310e-1,
                                          1.48753612908506148525e-2,
                                          7.86869131145613259100e-4,
                                          1.84631831751005468180e-5,
                                          1.42151175831644588870e-7,
                                          2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * Polynomial(kCentre, r) / Polynomial(kCentreBelow, r);
  }
  // The C library's logarithm differs from one machine to another.
  double r = std::sqrt(-static_cast<double>(kernels::LogExtended(q < 0 ? p : 1 - p)));
  double value;
  if (r <= 5) {
    r -= 1.6;
    value = Polynomial(kMiddle, r) / Polynomial(kMiddleBelow, r);
  } else {
    r -= 5;
    value = Polynomial(kTail, r) / Polynomial(kTailBelow, r);
  }
  return q < 0 ? -value : value;
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double mean = 0, deviation = 1;
  if (const absl::Status status = FirstError({ReadConstant(arguments[1], "mean", &mean),
                                              ReadConstant(arguments[2], "stddev", &deviation)});
      !status.ok()) {
    return status;
  }
  return BindDrawnFloats(arguments, 0, 3, [=](Draws& draws) {
    // Never 0 or 1.
    const double p = (static_cast<double>(draws.DoubleWord() >> 12) + 0.5) * 0x1p-52;
    return mean + deviation * NormalQuantile(p);
  });
}

const RowFunctionRegistration kRegistration({
    .name = "random_normal",
    .signature = "random_normal(shape=None, mean=0, stddev=1, dtype=\"float32\", seed=None)",
    .doc = "Numbers of a normal distribution, as tf.random.normal gives them.\n"
           "\n"
           "shape: a list of constants, or of integers of the data; left out: a scalar.\n"
           "mean, stddev: constants.\n"
           "dtype: \"float32\" or \"float64\".\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "By inversion, from 52 random bits each: no value is farther than 8.2 deviations from "
           "the mean. The draw belongs to the element:\n"
           "it depends on seed, stage, epoch and the element's record, on nothing else. Calls of "
           "the same stage with the same seed draw\n"
           "alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
