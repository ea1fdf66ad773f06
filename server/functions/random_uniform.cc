#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

// Elements that are handed on at a time.
constexpr int64_t kTileElements = 1024;

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

template <typename T>
class RandomUniform final : public RowKernel {
 public:
  RandomUniform(int64_t elements, const Limits& limits, DrawSource source)
      : elements_(elements), limits_(limits), source_(std::move(source)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    Draws draws(source_, arguments[0]);
    for (int64_t start = 0; start < elements_; start += kTileElements) {
      const int64_t count = std::min(kTileElements, elements_ - start);
      uint8_t* const to = out.Reserve(static_cast<size_t>(count) * sizeof(T));
      for (int64_t i = 0; i < count; ++i) {
        const T value = DrawOne<T>(limits_, draws);
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
  const Limits limits_;
  const DrawSource source_;
};

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
  const int64_t elements = *NumElements(shape);
  const DrawSource source = ReadDraws(arguments.back());
  BoundRowFunction bound;
  bound.draws = true;
  if (dtype == DType::kInt32 || dtype == DType::kInt64) {
    const absl::Status status = dtype == DType::kInt32 ? ReadIntegers<int32_t>(arguments, &limits)
                                                       : ReadIntegers<int64_t>(arguments, &limits);
    if (!status.ok()) return status;
    if (dtype == DType::kInt32) {
      bound.kernel = std::make_shared<RandomUniform<int32_t>>(elements, limits, source);
    } else {
      bound.kernel = std::make_shared<RandomUniform<int64_t>>(elements, limits, source);
    }
  } else if (dtype == DType::kFloat32 || dtype == DType::kFloat64) {
    if (const absl::Status status =
            FirstError({ReadConstant(arguments[1], "minval", &limits.low),
                        ReadConstant(arguments[2], "maxval", &limits.high)});
        !status.ok()) {
      return status;
    }
    if (!(limits.low < limits.high)) return WrongArgument("maxval", "a constant above minval");
    if (dtype == DType::kFloat32) {
      bound.kernel = std::make_shared<RandomUniform<float>>(elements, limits, source);
    } else {
      bound.kernel = std::make_shared<RandomUniform<double>>(elements, limits, source);
    }
  } else {
    return WrongArgument("dtype", "\"float32\", \"float64\", \"int32\" or \"int64\"");
  }
  bound.type = {*dtype, shape};
  return bound;
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
