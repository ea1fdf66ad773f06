#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/expr/drawn_numbers.h"
#include "server/expr/number_types.h"
#include "server/kernels/saturate.h"

namespace penstock::expr {
namespace {

// [low, high) of T, each of which is a constant or a number of the data.
template <typename T>
struct Uniform {
  using Bound = std::conditional_t<std::is_integral_v<T>, T, double>;

  Bound low = 0;
  Bound high = 1;
  // Of what the data gives, in the order of the arguments.
  DType low_of_data = DType::kInvalid;
  DType high_of_data = DType::kInvalid;

  T operator()(Draws& draws) const {
    if constexpr (std::is_integral_v<T>) {
      const uint64_t count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
      return static_cast<T>(static_cast<uint64_t>(low) + draws.Below(count));
    } else if constexpr (sizeof(T) == 4) {
      // 24 bits, as TensorFlow's generator has 23 and torch's 24.
      const float first = static_cast<float>(low), end = static_cast<float>(high);
      const float unit = static_cast<float>(draws.Word() >> 8) * 0x1p-24f;
      const float value = first + unit * (end - first);
      return value < end ? value : first;
    } else {
      return draws.Between(low, high);
    }
  }

  // Whether there are numbers between them, and of floats T holds their distance.
  bool Fits() const {
    // Of integers there is none between equal ones.
    if constexpr (std::is_integral_v<T>) {
      return low < high;
    } else {
      return low <= high && std::isfinite(static_cast<T>(high) - static_cast<T>(low));
    }
  }

  absl::Status ReadRow(absl::Span<const RowValue> values) {
    for (auto [dtype, value] : {std::pair(low_of_data, &low), {high_of_data, &high}}) {
      if (dtype == DType::kInvalid) continue;
      VisitNumber(dtype, [&](auto type) {
        decltype(type) read;
        std::memcpy(&read, values[0].data, sizeof(read));
        *value = kernels::SaturateCast<Bound>(read);
      });
      values.remove_prefix(1);
    }
    if (Fits()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("random_uniform: expected a maxval above minval, ", low, ", found ", high));
  }
};

absl::Status ReadBound(const Argument& argument, const char* name, double* value) {
  return ReadConstant(argument, name, value);
}
template <typename T>
absl::Status ReadBound(const Argument& argument, const char* name, T* value) {
  int64_t read = *value;
  absl::Status status = ReadConstant(argument, name, std::numeric_limits<T>::min(),
                                     std::numeric_limits<T>::max(), &read);
  *value = static_cast<T>(read);
  return status;
}

// One number of the data, of integers an integer.
template <typename T>
bool IsOfData(const Argument& argument) {
  const TensorType& type = argument.type;
  return argument.given && argument.literal == nullptr && type.shape.empty() &&
         (std::is_integral_v<T> ? IsInteger(type.dtype) : VisitNumber(type.dtype, [](auto) {}));
}

template <typename T>
absl::StatusOr<BoundRowFunction> BindUniform(absl::Span<const Argument> arguments, DType dtype) {
  DrawnShape shape;
  if (absl::Status status = shape.Read(arguments, 0); !status.ok()) return status;
  if (std::is_integral_v<T> && !arguments[2].given)
    return WrongArgument("maxval", "a constant, since integers have no default");
  Uniform<T> uniform;
  std::vector<int> of_data;
  if (IsOfData<T>(arguments[1])) {
    uniform.low_of_data = arguments[1].type.dtype;
    of_data.push_back(1);
  } else if (absl::Status status = ReadBound(arguments[1], "minval", &uniform.low); !status.ok()) {
    return status;
  }
  if (IsOfData<T>(arguments[2])) {
    uniform.high_of_data = arguments[2].type.dtype;
    of_data.push_back(2);
  } else if (absl::Status status = ReadBound(arguments[2], "maxval", &uniform.high); !status.ok()) {
    return status;
  }
  if (of_data.empty() && !(uniform.low < uniform.high))
    return WrongArgument("maxval", "a constant above minval");
  if (of_data.empty() && !uniform.Fits()) {
    return WrongArgument("maxval",
                         absl::StrCat("a constant whose distance from minval ", DTypeName(dtype),
                                      " holds, found ", uniform.low, " and ", uniform.high));
  }
  return BindDrawnNumbers<T>(dtype, std::move(shape), arguments.back(), uniform, of_data);
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  std::string name = "float32";
  if (const absl::Status status = ReadConstant(arguments[3], "dtype", &name); !status.ok()) {
    return status;
  }
  const auto dtype = DTypeFromName(name);
  if (dtype == DType::kInt32) return BindUniform<int32_t>(arguments, *dtype);
  if (dtype == DType::kInt64) return BindUniform<int64_t>(arguments, *dtype);
  if (dtype == DType::kFloat32) return BindUniform<float>(arguments, *dtype);
  if (dtype == DType::kFloat64) return BindUniform<double>(arguments, *dtype);
  return WrongArgument("dtype", "\"float32\", \"float64\", \"int32\" or \"int64\"");
}

const RowFunctionRegistration kRegistration({
    .name = "random_uniform",
    .signature = "random_uniform(shape=None, minval=0, maxval=1, dtype=\"float32\", seed=None)",
    .doc = "Numbers that are equally likely anywhere from minval on and below maxval, as "
           "tf.random.uniform gives them.\n"
           "\n"
           "shape: a list of constants, or of integers of the data; left out: a scalar.\n"
           "minval, maxval: constants, or numbers of the data, of integers integers: "
           "random_uniform([], 0, shape(x)[0], \"int64\"). Of integers maxval must be given.\n"
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
