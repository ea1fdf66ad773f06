// The strings of an .npy file's array, which NumPy keeps in cells of one size.
//
// Threads: any; no state.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "io/array/npy_header.h"

namespace penstock {

// What NumPy shows of the elements at `raw`, without the zeros at their ends; code points as UTF-8.
// DataLoss, with the element's number, for one that is none. REQUIRES: header.element is kBytes or
// kUnicode; as many elements at `raw` as there are strings.
absl::Status DecodeNpyStrings(const NpyHeader& header, const uint8_t* raw,
                              absl::Span<std::string> strings);

}  // namespace penstock
