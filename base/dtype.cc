#include "base/dtype.h"

#include <array>

namespace penstock {
namespace {

struct Row {
  const char* name;
  size_t size;
};

constexpr std::array<Row, 15> kRows = {{
    {"invalid", 0},
    {"bool", 1},
    {"int8", 1},
    {"uint8", 1},
    {"int16", 2},
    {"uint16", 2},
    {"int32", 4},
    {"uint32", 4},
    {"int64", 8},
    {"uint64", 8},
    {"float16", 2},
    {"bfloat16", 2},
    {"float32", 4},
    {"float64", 8},
    {"string", 0},
}};

}  // namespace

size_t DTypeSize(DType dtype) { return kRows[static_cast<size_t>(dtype)].size; }

const char* DTypeName(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (size_t code = 1; code < kRows.size(); ++code) {
    if (name == kRows[code].name) return static_cast<DType>(code);
  }
  return std::nullopt;
}

bool IsFloating(DType dtype) { return dtype >= DType::kFloat16 && dtype <= DType::kFloat64; }

bool IsInteger(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kUint64; }

bool IsSigned(DType dtype) {
  return IsFloating(dtype) || dtype == DType::kInt8 || dtype == DType::kInt16 ||
         dtype == DType::kInt32 || dtype == DType::kInt64;
}

}  // namespace penstock
