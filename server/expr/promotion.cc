#include "server/expr/promotion.h"

#include <algorithm>

namespace penstock::expr {
namespace {

bool IsNumber(DType dtype) {
  return dtype >= DType::kBool && dtype <= DType::kUint64
             ? true
             : dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

DType SignedOfSize(size_t bytes) {
  switch (bytes) {
    case 1:
      return DType::kInt8;
    case 2:
      return DType::kInt16;
    case 4:
      return DType::kInt32;
    default:
      return DType::kInt64;
  }
}

}  // namespace

DType ToFloating(DType dtype) {
  if (IsFloating(dtype)) return dtype;
  return DTypeSize(dtype) <= 2 ? DType::kFloat32 : DType::kFloat64;
}

std::optional<DType> Promote(DType a, DType b) {
  if (!IsNumber(a) || !IsNumber(b)) return std::nullopt;
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  if (IsFloating(a) || IsFloating(b)) {
    if (!IsFloating(a)) std::swap(a, b);
    if (IsFloating(b)) return DType::kFloat64;  // the two differ
    return a == DType::kFloat64 || DTypeSize(b) > 2 ? DType::kFloat64 : DType::kFloat32;
  }
  if (IsSigned(a) == IsSigned(b)) return DTypeSize(a) > DTypeSize(b) ? a : b;
  if (!IsSigned(a)) std::swap(a, b);
  if (DTypeSize(a) > DTypeSize(b)) return a;
  // A signed type that holds the unsigned one; none does for uint64.
  if (DTypeSize(b) == 8) return DType::kFloat64;
  return SignedOfSize(2 * DTypeSize(b));
}

std::optional<DType> PromoteAll(absl::Span<const Operand> operands, bool& weak) {
  std::optional<DType> strong;
  bool weak_integer = false;
  bool weak_large = false;
  bool weak_floating = false;
  for (const Operand& operand : operands) {
    if (operand.weak) {
      (IsFloating(operand.dtype) ? weak_floating : weak_integer) = true;
      weak_large |= operand.dtype == DType::kUint64;
      continue;
    }
    strong = strong ? Promote(*strong, operand.dtype) : Promote(operand.dtype, operand.dtype);
    if (!strong) return std::nullopt;
  }
  weak = !strong.has_value();
  if (weak) return weak_floating ? DType::kFloat64 : weak_large ? DType::kUint64 : DType::kInt64;
  if (IsFloating(*strong)) return strong;
  if (weak_floating) {
    const bool small = IsInteger(*strong) && DTypeSize(*strong) <= 2;
    return small ? DType::kFloat32 : DType::kFloat64;
  }
  if (weak_integer && *strong == DType::kBool) return DType::kInt64;
  return strong;
}

}  // namespace penstock::expr
