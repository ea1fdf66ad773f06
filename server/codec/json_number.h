// Numbers and bools of JSON, as values of a type.
//
// Threads:  any; no state.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/dtype.h"

namespace penstock {

// Writes what a token means (base/json_text.h: a JsonScalar, or any other bytes) to `out`,
// DTypeSize(dtype) bytes. bool, int32, int64, float32 and float64. Null, or what is wrong: "a
// number with a fraction or exponent", "out of its range", or "" where the token is no number or
// bool, as the type may be.
const char* ReadJsonScalar(absl::string_view token, DType dtype, uint8_t* out);

}  // namespace penstock
