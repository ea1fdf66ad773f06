// The schema of a Parquet file: its columns, of which types, and which of them are read here.
//
// Source: "Logical Types" of the Apache Parquet format, and SchemaElement of parquet.thrift.
//
// Threads:  constant after construction.
// Limits:   kMaxParquetColumns groups and columns, kMaxParquetDepth of them in each other, names of
//           kMaxParquetNameBytes together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/dtype.h"
#include "io/parquet/thrift_compact.h"

namespace penstock {

inline constexpr size_t kMaxParquetColumns = size_t{1} << 16;
inline constexpr size_t kMaxParquetNameBytes = size_t{16} << 20;
inline constexpr size_t kMaxParquetDepth = 64;

// How values are stored. The numbers are those of `Type` in the file.
enum class ParquetType : uint8_t {
  kBoolean = 0,
  kInt32 = 1,
  kInt64 = 2,
  kInt96 = 3,
  kFloat = 4,
  kDouble = 5,
  kByteArray = 6,
  kFixedLenByteArray = 7,
};
inline constexpr int kNumParquetTypes = 8;

// As the format's documentation calls it: "INT64".
const char* ParquetTypeName(ParquetType type);

// One that holds values: a leaf of the schema.
struct ParquetColumn {
  std::vector<std::string> path;  // names from the root on; of one name where it is not nested
  ParquetType type = ParquetType::kBoolean;
  uint32_t value_bytes = 0;  // of a stored value of a fixed size; 0: of any size, or bits
  bool is_optional = false;  // may be null

  // What becomes of it; kInvalid where `outside` says why it is not read here.
  DType dtype = DType::kInvalid;
  std::string type_name;  // "int8", "timestamp[us]", "string"
  std::string outside;

  bool is_text() const { return dtype == DType::kString; }
};

// Reads the list of SchemaElements that is next. DataLoss, without its address, for what is no
// schema.
absl::Status ReadParquetSchema(ThriftReader& reader, std::vector<ParquetColumn>* columns);

}  // namespace penstock
