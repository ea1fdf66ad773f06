// Which type an operation computes in, from the types of its arguments: NumPy 2's rules, except
// that an integer of 8 or 16 bits with a weak floating scalar is float32, and that the functions
// which NumPy would compute in float16 use float32.
#pragma once

#include <optional>

#include "absl/types/span.h"
#include "base/dtype.h"

namespace penstock::expr {

struct Operand {
  DType dtype = DType::kInvalid;
  bool weak = false;  // a scalar without a type of its own: kInt64 (kUint64 beyond its range) or
                      // kFloat64 stand for "integer" and "floating"
};

// nullopt when the types have no common one (strings, float16).
std::optional<DType> Promote(DType a, DType b);

// The common type. `weak` receives whether all operands are weak.
std::optional<DType> PromoteAll(absl::Span<const Operand> operands, bool& weak);

// The type in which a function that exists for floating types only computes for an argument of
// `dtype`.
DType ToFloating(DType dtype);

}  // namespace penstock::expr
