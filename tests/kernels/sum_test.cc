// Sums and matrix products against their scalar twins, on every instruction set, at all tail
// lengths, with nothing to read behind.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

// Before highway's own headers.
#include "server/kernels/targets.h"

#include "hwy/targets.h"
#include "server/kernels/matrix.h"
#include "server/kernels/reduce.h"
#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"

namespace penstock::kernels {
namespace {

using testing::GuardedMemory;

template <typename Check>
void OnEachInstructionSet(const Check& check) {
  hwy::SetSupportedTargetsForTest(0);
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  int sets = 0;
  for (const int64_t target : {HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if ((supported & target) == 0) continue;
    ++sets;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    CAPTURE(hwy::TargetName(target));
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  CHECK(sets > 0);
}

template <typename T>
void Draw(std::mt19937& random, T* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(
        std::ldexp(static_cast<double>(random()) - 0x1p31, static_cast<int>(random() % 40) - 50));
  }
}

bool SameBits(double a, double b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

template <typename T>
void CheckSums() {
  std::mt19937 random(3);
  OnEachInstructionSet([&] {
    for (size_t count = 0; count <= 3 * kSumLanes + 1; ++count) {
      CAPTURE(count);
      const GuardedMemory memory(count * sizeof(T));
      T* const values = memory.As<T>();
      Draw(random, values, count);
      REQUIRE(SameBits(Sum(values, count), SumScalar(values, count)));
      REQUIRE(SameBits(SumOfSquares(values, count, 0.25), SumOfSquaresScalar(values, count, 0.25)));
      long double exact = 0;
      for (size_t i = 0; i < count; ++i) exact += values[i];
      REQUIRE(Sum(values, count) == Approx(static_cast<double>(exact)).margin(1e-9));
    }
  });
}

TEST_CASE("Sums have the bits of their scalar twin") {
  CheckSums<float>();
  CheckSums<double>();
}

template <typename T>
void CheckColumnSums() {
  std::mt19937 random(5);
  OnEachInstructionSet([&] {
    for (size_t columns = 0; columns <= 70; ++columns) {
      for (const size_t rows : {0, 1, 2, 9}) {
        CAPTURE(columns, rows);
        const GuardedMemory in(rows * columns * sizeof(T)), centres(columns * sizeof(double));
        const GuardedMemory totals(columns * sizeof(double));
        Draw(random, in.As<T>(), rows * columns);
        Draw(random, centres.As<double>(), columns);
        std::vector<double> sums(columns, 0.0), squares(columns, 0.0);
        for (size_t i = 0; i < rows * columns; ++i) {
          const double value = static_cast<double>(in.As<T>()[i]);
          const double distance = value - centres.As<double>()[i % columns];
          sums[i % columns] += value;
          squares[i % columns] += distance * distance;
        }
        SumColumns(in.As<T>(), rows, columns, nullptr, totals.As<double>());
        REQUIRE(totals.BeginsWith(sums));
        SumColumns(in.As<T>(), rows, columns, centres.As<double>(), totals.As<double>());
        REQUIRE(totals.BeginsWith(squares));
      }
    }
  });
}

TEST_CASE("Sums of columns have the bits of a loop") {
  CheckColumnSums<float>();
  CheckColumnSums<double>();
}

template <typename T>
void CheckProducts() {
  std::mt19937 random(4);
  OnEachInstructionSet([&] {
    for (size_t columns = 1; columns <= 2 * 64 / sizeof(T) + 1; ++columns) {
      for (const size_t inner : {1, 3, 7}) {
        constexpr size_t kRows = 3;
        CAPTURE(columns, inner);
        const GuardedMemory x(kRows * inner * sizeof(T)), w(inner * columns * sizeof(T));
        const GuardedMemory out(kRows * columns * sizeof(T));
        Draw(random, x.As<T>(), kRows * inner);
        Draw(random, w.As<T>(), inner * columns);
        std::vector<T> twin(kRows * columns);
        MultiplyMatrix(x.As<T>(), w.As<T>(), kRows, inner, columns, out.As<T>());
        MultiplyMatrixScalar(x.As<T>(), w.As<T>(), kRows, inner, columns, twin.data());
        REQUIRE(out.BeginsWith(twin));
      }
    }
  });
}

TEST_CASE("Matrix products have the bits of their scalar twin") {
  CheckProducts<float>();
  CheckProducts<double>();
}

}  // namespace
}  // namespace penstock::kernels
