// The lesser and the greater of two rows against a loop, on every instruction set, at all tail
// lengths, with nothing to read behind.
#include "server/kernels/extreme.h"

#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/instruction_sets.h"

namespace penstock::kernels {
namespace {

using testing::GuardedMemory;

template <typename T>
T Drawn(std::mt19937& random) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr T kSpecial[] = {0, T(-0.0), std::numeric_limits<T>::quiet_NaN(),
                              std::numeric_limits<T>::infinity()};
    if (random() % 4 == 0) return kSpecial[random() % 4];
    return static_cast<T>(static_cast<int>(random() % 7) - 3);
  } else {
    if (random() % 4 == 0)
      return random() % 2 == 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    return static_cast<T>(random());
  }
}

template <typename T>
void CheckRows(DType dtype) {
  std::mt19937 random(5);
  testing::ForEachInstructionSet([&](const char*) {
    for (const Extreme extreme : {Extreme::kLeast, Extreme::kGreatest}) {
      for (size_t count = 0; count < 150; ++count) {
        CAPTURE(count, static_cast<int>(dtype), extreme == Extreme::kLeast);
        const GuardedMemory first(count * sizeof(T)), second(count * sizeof(T));
        T* const best = first.As<T>();
        T* const values = second.As<T>();
        std::vector<T> want(count);
        for (size_t i = 0; i < count; ++i) {
          best[i] = Drawn<T>(random);
          values[i] = Drawn<T>(random);
          const bool stays =
              best[i] != best[i] ||
              (extreme == Extreme::kLeast ? best[i] <= values[i] : best[i] >= values[i]);
          want[i] = stays ? best[i] : values[i];
        }
        FindExtreme(dtype, extreme)(best, values, count);
        REQUIRE(first.BeginsWith(want));
      }
    }
  });
}

TEST_CASE("The lesser and the greater of each pair of values") {
  CheckRows<uint8_t>(DType::kBool);
  CheckRows<uint8_t>(DType::kUint8);
  CheckRows<int8_t>(DType::kInt8);
  CheckRows<uint16_t>(DType::kUint16);
  CheckRows<int16_t>(DType::kInt16);
  CheckRows<uint32_t>(DType::kUint32);
  CheckRows<int32_t>(DType::kInt32);
  CheckRows<uint64_t>(DType::kUint64);
  CheckRows<int64_t>(DType::kInt64);
  CheckRows<float>(DType::kFloat32);
  CheckRows<double>(DType::kFloat64);
}

TEST_CASE("Strings and halves have no code that compares them") {
  CHECK(FindExtreme(DType::kString, Extreme::kLeast) == nullptr);
  CHECK(FindExtreme(DType::kFloat16, Extreme::kLeast) == nullptr);
}

}  // namespace
}  // namespace penstock::kernels
