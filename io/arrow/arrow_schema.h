// The schema of Arrow data: which columns there are, of which types.
//
// Source: "Arrow Columnar Format", version 1, and format/Schema.fbs of Apache Arrow.
//
// Threads:  constant after construction.
// Limits:   kMaxArrowFields fields with those below others, kMaxArrowDepth of them in each other,
//           names of 4 KiB and kMaxArrowNameBytes together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/arrow/flat_buffer.h"

namespace penstock {

inline constexpr size_t kMaxArrowFields = size_t{1} << 16;
inline constexpr size_t kMaxArrowNameBytes = size_t{16} << 20;
inline constexpr int kMaxArrowDepth = 64;

// The numbers are those of the union `Type` in the file.
enum class ArrowKind : uint8_t {
  kNull = 1,
  kInt = 2,
  kFloatingPoint = 3,
  kBinary = 4,
  kUtf8 = 5,
  kBool = 6,
  kDecimal = 7,
  kDate = 8,
  kTime = 9,
  kTimestamp = 10,
  kInterval = 11,
  kList = 12,
  kStruct = 13,
  kUnion = 14,
  kFixedSizeBinary = 15,
  kFixedSizeList = 16,
  kMap = 17,
  kDuration = 18,
  kLargeBinary = 19,
  kLargeUtf8 = 20,
  kLargeList = 21,
  kRunEndEncoded = 22,
  kBinaryView = 23,
  kUtf8View = 24,
  kListView = 25,
  kLargeListView = 26,
};

// As the format's documentation calls it: "large_list".
const char* ArrowKindName(ArrowKind kind);

struct ArrowType {
  ArrowKind kind = ArrowKind::kNull;
  // Of a number that is stored: bits of an integer, a float, a date, a time.
  int32_t bits = 0;
  bool is_signed = true;
  // What a time, a timestamp or a duration counts: seconds, or 10^-3, 10^-6, 10^-9 of them.
  int16_t unit = 0;
  // Bytes of a fixed-size binary, elements of a fixed-size list.
  int32_t size = 0;
  // A union whose children stand side by side, without offsets.
  bool is_sparse = false;

  friend bool operator==(const ArrowType&, const ArrowType&) = default;
};

// "int32", "timestamp[us]", "fixed_size_list[3]".
std::string ArrowTypeName(const ArrowType& type);

struct ArrowField {
  std::string name;
  ArrowType type;  // of a dictionary: of its values
  std::vector<ArrowField> children;
  // Set where the column holds places in a dictionary.
  std::optional<int64_t> dictionary;
  ArrowType indices;
};

struct ArrowSchema {
  std::vector<ArrowField> fields;
  bool before_version_5 = false;  // unions have a bitmap then
};

// Of the table `Schema`. DataLoss for what is no schema, InvalidArgument for one that cannot be
// read: big-endian numbers.
absl::StatusOr<ArrowSchema> ReadArrowSchema(FlatBuffer& buffer, FlatTable table);

}  // namespace penstock
