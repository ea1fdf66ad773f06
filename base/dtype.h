// The types of tensor elements, by NumPy's names.
//
// Threads:  functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock {

// The codes are those of penstock.v1.DataType and of ring/layout.h (a test compares the three).
enum class DType : uint8_t {
  kInvalid = 0,
  kBool = 1,
  kInt8 = 2,
  kUint8 = 3,
  kInt16 = 4,
  kUint16 = 5,
  kInt32 = 6,
  kUint32 = 7,
  kInt64 = 8,
  kUint64 = 9,
  kFloat16 = 10,
  kBfloat16 = 11,
  kFloat32 = 12,
  kFloat64 = 13,
  kString = 14,
};

// Bytes of one element; 0 for kInvalid and for kString, whose elements have no fixed size.
size_t DTypeSize(DType dtype);

// NumPy's name ("float32"); "string" for kString.
const char* DTypeName(DType dtype);

std::optional<DType> DTypeFromName(std::string_view name);

bool IsFloating(DType dtype);
bool IsInteger(DType dtype);  // bool is not an integer
bool IsSigned(DType dtype);

}  // namespace penstock
