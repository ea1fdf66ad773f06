// Integers of a call, such as sizes, offsets and shifts, each of which is a constant or a value of
// the data.
//
// Threads:  Add() while a program is compiled; Read() is safe from any thread.
// Errors:   InvalidArgument that names the argument; an integer of the data that is out of its
//           range is DataLoss that names it. One of uint64 beyond int64 is taken for the greatest
//           of int64: slices cut both alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/expr/function.h"

namespace penstock::expr {

using IntegersRead = absl::InlinedVector<int64_t, 8>;

class DataIntegers {
 public:
  // One integer of [low, high]: the argument number `position` of the call.
  absl::Status Add(absl::Span<const Argument> arguments, int position, std::string_view name,
                   int64_t low, int64_t high);
  // `count` of them in a list: `form` is how one is written, "[height, width]".
  absl::Status AddList(absl::Span<const Argument> arguments, int position, std::string_view name,
                       std::string_view form, size_t count, int64_t low, int64_t high);
  // As many as a tensor of `shape` holds, which the data gives: the caller has seen its type.
  void AddTensor(const Argument& argument, int position, std::string_view name, const Shape& shape,
                 int64_t low, int64_t high);

  // The integer number `i` of all, in their order, where it is a constant.
  std::optional<int64_t> constant(size_t i) const { return constants_[i]; }
  // It, or kUnknownSize.
  int64_t size(size_t i) const;
  bool all_constant() const { return positions_.empty(); }
  // The arguments that the kernel must receive, in order.
  const std::vector<int>& positions() const { return positions_; }

  // All integers of a row. `values`: of positions(). Another number of elements than the list has
  // is DataLoss.
  absl::Status Read(absl::Span<const RowValue> values, IntegersRead* integers) const;

 private:
  struct Item {
    std::string name;
    size_t count;
    int64_t low;
    int64_t high;
    DType dtype = DType::kInvalid;  // of the data; kInvalid: constants
  };

  std::vector<Item> items_;
  std::vector<std::optional<int64_t>> constants_;
  std::vector<int> positions_;
};

}  // namespace penstock::expr
