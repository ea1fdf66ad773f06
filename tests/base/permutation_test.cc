#include "base/permutation.h"

#include <map>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("a permutation takes every number to another one and back") {
  for (const uint64_t size : {1, 2, 3, 4, 5, 16, 17, 100, 997, 4096, 65537}) {
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      const Permutation permutation(size, 7, epoch);
      std::vector<bool> seen(size);
      for (uint64_t i = 0; i < size; ++i) {
        const uint64_t image = permutation(i);
        CAPTURE(size, epoch, i, image);
        REQUIRE(image < size);
        REQUIRE_FALSE(seen[image]);
        REQUIRE(permutation.Inverse(image) == i);
        seen[image] = true;
      }
    }
  }
}

TEST_CASE("a permutation of many numbers stays in its range") {
  const uint64_t size = (uint64_t{1} << 61) + 12345;
  const Permutation permutation(size, 99, 1);
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t number = size - 1 - i * 7919;
    const uint64_t image = permutation(number);
    REQUIRE(image < size);
    REQUIRE(permutation.Inverse(image) == number);
  }
}

// Chi-squared over which tenth of the range each tenth goes to: 81 degrees of freedom, so that 150
// is passed by chance once in 10^5.
TEST_CASE("every part of a permutation is spread over the whole") {
  const uint64_t size = 100'000;
  for (uint64_t key = 0; key < 5; ++key) {
    const Permutation permutation(size, key, 0);
    uint64_t counts[10][10] = {};
    uint64_t neighbours = 0;
    for (uint64_t i = 0; i < size; ++i) {
      ++counts[i * 10 / size][permutation(i) * 10 / size];
      if (i > 0 && permutation(i) == permutation(i - 1) + 1) ++neighbours;
    }
    double chi_squared = 0;
    for (const auto& row : counts) {
      for (const uint64_t count : row) {
        const double off = static_cast<double>(count) - 1000;
        chi_squared += off * off / 1000;
      }
    }
    CHECK(chi_squared < 150);
    CHECK(neighbours < 20);  // expected: 1
  }
}

TEST_CASE("keys and epochs give other orders") {
  const Permutation a(1000, 1, 0), b(1000, 2, 0), c(1000, 1, 1);
  int same_key = 0, same_epoch = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    same_key += a(i) == b(i);
    same_epoch += a(i) == c(i);
  }
  CHECK(same_key < 20);
  CHECK(same_epoch < 20);
}

TEST_CASE("few numbers come in every order, each as often as the others") {
  constexpr int kEpochs = 20000;
  size_t orders = 1;
  for (uint64_t size = 1; size <= 4; ++size) {
    orders *= size;
    std::map<std::vector<uint64_t>, int> seen;
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      const Permutation permutation(size, 7, epoch);
      std::vector<uint64_t> order;
      for (uint64_t i = 0; i < size; ++i) order.push_back(permutation(i));
      ++seen[order];
    }
    CAPTURE(size);
    CHECK(seen.size() == orders);
    for (const auto& [order, times] : seen) {
      // Half and twice of what is expected are many deviations away.
      CHECK(times > kEpochs / static_cast<int>(orders) / 2);
      CHECK(times < kEpochs / static_cast<int>(orders) * 2);
    }
  }
}

}  // namespace
}  // namespace penstock
