// A function of one string, made one of a tensor of strings: each string's result in the place of
// the string.
//
// Threads:  while a program is compiled; the kernel is safe from any thread.
// Limits:   a row's results are at most kEachStringBytesMax bytes. Those whose sizes only the
//           string tells have one shape.
// Cost:     results are copied once more than those of one string.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "server/expr/function.h"

namespace penstock::expr {

inline constexpr uint64_t kEachStringBytesMax = uint64_t{1} << 30;

// Refuses what is no string and no tensor of strings.
absl::Status ReadStrings(const Argument& argument, std::string_view name);

// `one`: bound for a string scalar as its only tensor argument. As it is where `strings` is a
// scalar's shape. `bytes_max`: of a row's results.
BoundRowFunction ForEachString(const Shape& strings, BoundRowFunction one,
                               uint64_t bytes_max = kEachStringBytesMax);

}  // namespace penstock::expr
