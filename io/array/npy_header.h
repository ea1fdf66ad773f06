// The header of an .npy file: what its array looks like and where its bytes begin.
//
// The format is NumPy's (numpy/lib/format.py, versions 1.0 to 3.0): "\x93NUMPY", two bytes of
// version, the length of a text (2 or 4 bytes, little-endian), and the text: a Python dict of
// `descr`, `fortran_order` and `shape`.
//
// Threads: any; no state.
// Limits:  a header of at most kMaxNpyHeaderBytes; an array of at most 2^62 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/signature.h"

namespace penstock {

inline constexpr size_t kMaxNpyHeaderBytes = 64 << 10;

// How an element lies in the file.
enum class NpyElement : uint8_t {
  kNumber,   // as the type's own bytes
  kBytes,    // a string of fixed length, filled up with zeros ("S")
  kUnicode,  // the same of code points of 4 bytes ("U")
  kUntyped,  // 2 bytes of no type ("V2"), as bfloat16 is written; the type is kInvalid
};

struct NpyHeader {
  TensorType type;
  NpyElement element = NpyElement::kNumber;
  uint64_t element_bytes = 0;  // in the file
  uint64_t data_offset = 0;    // from the beginning of the array's file
  uint64_t data_bytes = 0;
};

// `beginning`: the first kMaxNpyHeaderBytes of the file, or all of it. InvalidArgument, without an
// address, for what is no such file and for arrays that cannot be read: of objects, of structures,
// in Fortran order, in the other byte order.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const uint8_t> beginning);

}  // namespace penstock
