#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "server/expr/drawn_numbers.h"

namespace penstock::expr {
namespace {

struct Limits {
  double low = 0;
  double high = 1;
  int64_t first = 0;  // of integers
  uint64_t count = 0;
};

template <typename T>
T DrawOne(const Limits& limits, Draws& draws) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(limits.first) + draws.Below(limits.count));
  } else if constexpr (sizeof(T) == 4) {
    // 24 bits, as TensorFlow's generator has 23 and torch's 24.
    const float low = static_cast<float>(limits.low), high = static_cast<float>(limits.high);
    const float unit = static_cast<float>(draws.Word() >> 8) * 0x1p-24f;
    const float value = low + unit * (high - low);
    return value < high ? value : low;
  } else {
    return draws.Between(limits.low, limits.high);
  }
}

// [minval, maxval) of integers.
template <typename T>
absl::Status ReadIntegers(absl::Span<const Argument> arguments, Limits* limits) {
  int64_t low = 0, high = 0;
  constexpr int64_t kLeast = std::numeric_limits<T>::min(),
                    kGreatest = std::numeric_limits<T>::max();
  if (!arguments[2].given)
    return WrongArgument("maxval", "a constant, since integers have no default");
  if (const absl::Status status =
          FirstError({ReadConstant(arguments[1], "minval", kLeast, kGreatest, &low),
                      ReadConstant(arguments[2], "maxval", kLeast, kGreatest, &high)});
      !status.ok()) {
    return status;
  }
  if (high <= low) return WrongArgument("maxval", "a constant above minval");
  limits->first = low;
  limits->count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return absl::OkStatus();
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  Shape shape;
  Limits limits;
  std::string name = "float32";
  if (const absl::Status status = ReadConstant(arguments[3], "dtype", &name); !status.ok()) {
    return status;
  }
  if (arguments[0].given) {
    if (const absl::Status status = ReadShape(arguments[0], "shape", &shape); !status.ok()) {
      return status;
    }
  }
  const auto dtype = DTypeFromName(name);
  const auto bind = [&](auto type) {
    using T = decltype(type);
    return BindDrawnNumbers<T>({*dtype, shape}, arguments.back(),
                               [limits](Draws& draws) { return DrawOne<T>(limits, draws); });
  };
  if (dtype == DType::kInt32 || dtype == DType::kInt64) {
    const absl::Status status = dtype == DType::kInt32 ? ReadIntegers<int32_t>(arguments, &limits)
                                                       : ReadIntegers<int64_t>(arguments, &limits);
    if (!status.ok()) return status;
    return dtype == DType::kInt32 ? bind(int32_t{}) : bind(int64_t{});
  }
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64)
    return WrongArgument("dtype", "\"float32\", \"float64\", \"int32\" or \"int64\"");
  if (const absl::Status status = FirstError({ReadConstant(arguments[1], "minval", &limits.low),
                                              ReadConstant(arguments[2], "maxval", &limits.high)});
      !status.ok()) {
    return status;
  }
  if (!(limits.low < limits.high)) return WrongArgument("maxval", "a constant above minval");
  return dtype == DType::kFloat32 ? bind(float{}) : bind(double{});
}

const RowFunctionRegistration kRegistration({
    .name = "random_uniform",
    .signature = "random_uniform(shape=None, minval=0, maxval=1, dtype=\"float32\", seed=None)",
    .doc = "Numbers that are equally likely anywhere from minval on and below maxval, as "
           "tf.random.uniform gives them.\n"
           "\n"
           "shape: a list of constants; left out: a scalar.\n"
           "minval, maxval: constants. Of integers maxval must be given.\n"
           "dtype: \"float32\", \"float64\", \"int32\" or \"int64\".\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
           "record, on nothing else.\n"
           "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
