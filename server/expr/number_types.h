// Calls a function template with the C++ type of a dtype.
//
// Threads:  safe from any thread.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace penstock::expr {

// `function` is called with a value of the type, which only names it. False for dtypes in which
// nothing is computed: bool, float16, bfloat16, string.
template <typename Function>
bool VisitNumber(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kInt8:
      return function(int8_t{}), true;
    case DType::kUint8:
      return function(uint8_t{}), true;
    case DType::kInt16:
      return function(int16_t{}), true;
    case DType::kUint16:
      return function(uint16_t{}), true;
    case DType::kInt32:
      return function(int32_t{}), true;
    case DType::kUint32:
      return function(uint32_t{}), true;
    case DType::kInt64:
      return function(int64_t{}), true;
    case DType::kUint64:
      return function(uint64_t{}), true;
    case DType::kFloat32:
      return function(float{}), true;
    case DType::kFloat64:
      return function(double{}), true;
    default:
      return false;
  }
}

}  // namespace penstock::expr
