#include "io/parquet/parquet_schema.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// The numbers of the fields in SchemaElement.
enum ElementField {
  kType = 1,
  kTypeLength = 2,
  kRepetition = 3,
  kName = 4,
  kNumChildren = 5,
  kConverted = 6,
  kLogical = 10,
};
enum Repetition { kRequired = 0, kOptional = 1, kRepeated = 2 };

// The numbers of ConvertedType that say what the values are.
enum Converted {
  kUtf8 = 0,
  kEnum = 4,
  kDecimalConverted = 5,
  kDateConverted = 6,
  kTimeMillis = 7,
  kTimeMicros = 8,
  kTimestampMillis = 9,
  kTimestampMicros = 10,
  kUint8 = 11,
  kUint16 = 12,
  kUint32 = 13,
  kUint64 = 14,
  kInt8 = 15,
  kInt16 = 16,
  kInt32 = 17,
  kInt64 = 18,
  kJson = 19,
  kBson = 20,
  kInterval = 21,
};

// The numbers of the union LogicalType.
enum Logical {
  kNoLogical = 0,
  kStringLogical = 1,
  kEnumLogical = 4,
  kDecimal = 5,
  kDate = 6,
  kTime = 7,
  kTimestamp = 8,
  kInteger = 10,
  kUnknown = 11,
  kJsonLogical = 12,
  kBsonLogical = 13,
  kUuid = 14,
  kFloat16 = 15,
};

struct Element {
  int64_t type = -1;
  int64_t type_length = 0;
  int64_t repetition = kRequired;
  std::string name;
  int64_t num_children = -1;
  int64_t converted = -1;
  int logical = kNoLogical;
  int64_t bits = 0;  // of an integer
  bool is_signed = true;
  int unit = 0;  // of a time: 1, 2 or 3 for 10^-3, 10^-6, 10^-9 seconds
};

void ReadUnit(ThriftReader& reader, Element* element) {
  reader.Inner([&](int field) {
    if (field != 2) return;
    reader.Inner([&](int unit) { element->unit = unit; });
  });
}

void ReadLogical(ThriftReader& reader, Element* element) {
  reader.Inner([&](int field) {
    element->logical = field;
    if (field == kTime || field == kTimestamp) ReadUnit(reader, element);
    if (field != kInteger) return;
    reader.Inner([&](int of_integer) {
      if (of_integer == 1) element->bits = reader.Number();
      if (of_integer == 2) element->is_signed = reader.Bool();
    });
  });
}

void ReadElement(ThriftReader& reader, Element* element) {
  reader.Inner([&](int field) {
    switch (field) {
      case kType:
        element->type = reader.Number();
        break;
      case kTypeLength:
        element->type_length = reader.Number();
        break;
      case kRepetition:
        element->repetition = reader.Number();
        break;
      case kName:
        element->name = std::string(reader.Binary());
        break;
      case kNumChildren:
        element->num_children = reader.Number();
        break;
      case kConverted:
        element->converted = reader.Number();
        break;
      case kLogical:
        ReadLogical(reader, element);
        break;
      default:
        break;
    }
  });
}

// Older files have the converted type alone.
void TakeConverted(Element* element) {
  if (element->logical != kNoLogical) return;
  const auto integer = [element](int64_t bits, bool is_signed) {
    element->logical = kInteger;
    element->bits = bits;
    element->is_signed = is_signed;
  };
  const auto time = [element](Logical kind, int unit) {
    element->logical = kind;
    element->unit = unit;
  };
  switch (element->converted) {
    case kUtf8:
      element->logical = kStringLogical;
      break;
    case kEnum:
      element->logical = kEnumLogical;
      break;
    case kDecimalConverted:
      element->logical = kDecimal;
      break;
    case kDateConverted:
      element->logical = kDate;
      break;
    case kTimeMillis:
    case kTimeMicros:
      time(kTime, element->converted == kTimeMillis ? 1 : 2);
      break;
    case kTimestampMillis:
    case kTimestampMicros:
      time(kTimestamp, element->converted == kTimestampMillis ? 1 : 2);
      break;
    case kUint8:
    case kUint16:
    case kUint32:
    case kUint64:
      integer(int64_t{8} << (element->converted - kUint8), false);
      break;
    case kInt8:
    case kInt16:
    case kInt32:
    case kInt64:
      integer(int64_t{8} << (element->converted - kInt8), true);
      break;
    case kJson:
      element->logical = kJsonLogical;
      break;
    case kBson:
      element->logical = kBsonLogical;
      break;
    default:
      break;
  }
}

const char* UnitName(int unit) { return unit == 1 ? "ms" : unit == 2 ? "us" : "ns"; }

void Become(DType dtype, std::string type_name, ParquetColumn* column) {
  column->dtype = dtype;
  column->type_name = std::move(type_name);
}

// Integers that are stored in 32 or 64 bits; shorter ones in 32.
void BecomeInteger(int64_t bits, bool is_signed, ParquetColumn* column) {
  const int64_t stored = column->type == ParquetType::kInt32 ? 32 : 64;
  if (stored == 64 ? bits != 64 : bits != 8 && bits != 16 && bits != 32) {
    column->outside = absl::StrCat("integers of ", bits, " bits in ", stored);
    return;
  }
  const DType dtypes[2][4] = {{DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64},
                              {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64}};
  const int size = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3;
  const DType dtype = dtypes[is_signed ? 1 : 0][size];
  Become(dtype, DTypeName(dtype), column);
}

// What the values of a leaf become here.
void Decide(const Element& element, ParquetColumn* column) {
  const bool is_32 = column->type == ParquetType::kInt32;
  if (element.converted == kInterval) {
    column->outside = "intervals";
    return;
  }
  if (element.logical == kDecimal) {
    column->outside = "decimals";
    return;
  }
  if (element.logical == kUnknown) {
    column->outside = "columns of nulls alone (UNKNOWN)";
    return;
  }
  switch (column->type) {
    case ParquetType::kBoolean:
      if (element.logical == kNoLogical) return Become(DType::kBool, "bool", column);
      break;
    case ParquetType::kInt32:
    case ParquetType::kInt64:
      if (element.logical == kNoLogical) return BecomeInteger(is_32 ? 32 : 64, true, column);
      if (element.logical == kInteger)
        return BecomeInteger(element.bits, element.is_signed, column);
      if (element.logical == kDate && is_32) return Become(DType::kInt32, "date", column);
      if (element.unit < 1 || element.unit > 3) break;
      // Times of milliseconds are of 32 bits, timestamps never.
      if (element.logical == kTime && is_32 == (element.unit == 1)) {
        return Become(is_32 ? DType::kInt32 : DType::kInt64,
                      absl::StrCat("time[", UnitName(element.unit), "]"), column);
      }
      if (element.logical == kTimestamp && !is_32) {
        return Become(DType::kInt64, absl::StrCat("timestamp[", UnitName(element.unit), "]"),
                      column);
      }
      break;
    case ParquetType::kInt96:
      column->outside = "INT96";
      return;
    case ParquetType::kFloat:
      if (element.logical == kNoLogical) return Become(DType::kFloat32, "float32", column);
      break;
    case ParquetType::kDouble:
      if (element.logical == kNoLogical) return Become(DType::kFloat64, "float64", column);
      break;
    case ParquetType::kByteArray:
      if (element.logical == kNoLogical || element.logical == kStringLogical ||
          element.logical == kEnumLogical || element.logical == kJsonLogical ||
          element.logical == kBsonLogical)
        return Become(DType::kString, "string", column);
      break;
    case ParquetType::kFixedLenByteArray:
      if (element.logical == kFloat16 && column->value_bytes == 2)
        return Become(DType::kFloat16, "float16", column);
      if (element.logical == kNoLogical || element.logical == kStringLogical ||
          (element.logical == kUuid && column->value_bytes == 16)) {
        return Become(DType::kString, absl::StrCat("string of ", column->value_bytes, " bytes"),
                      column);
      }
      break;
  }
  column->outside = absl::StrCat(ParquetTypeName(column->type), " of logical type ",
                                 element.logical, " (LogicalType of parquet.thrift)");
}

uint32_t ValueBytes(ParquetType type, int64_t type_length) {
  switch (type) {
    case ParquetType::kInt32:
    case ParquetType::kFloat:
      return 4;
    case ParquetType::kInt64:
    case ParquetType::kDouble:
      return 8;
    case ParquetType::kFixedLenByteArray:
      return static_cast<uint32_t>(type_length);
    case ParquetType::kBoolean:
    case ParquetType::kInt96:
    case ParquetType::kByteArray:
      return 0;
  }
  return 0;
}

absl::Status Unsound(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the schema is not sound: ", what));
}

// Goes through the elements, which stand in the order of a walk from the root.
class Builder {
 public:
  explicit Builder(std::vector<ParquetColumn>* columns) : columns_(*columns) {}

  absl::Status Take(Element element) {
    name_bytes_ += element.name.size();
    if (name_bytes_ > kMaxParquetNameBytes) return Unsound("its names are too long");
    if (++num_elements_ > kMaxParquetColumns)
      return Unsound(absl::StrCat("it has more than ", kMaxParquetColumns, " columns"));
    if (num_elements_ == 1) {
      if (element.num_children < 0) return Unsound("its root has no columns");
      open_.push_back({"", element.num_children, false, false});
      return absl::OkStatus();
    }
    while (!open_.empty() && open_.back().left == 0) open_.pop_back();
    if (open_.empty()) return Unsound("it has more columns than its groups say");
    --open_.back().left;
    if (element.repetition < kRequired || element.repetition > kRepeated)
      return Unsound(absl::StrCat("a repetition of ", element.repetition));
    if (element.type < 0) {
      if (element.num_children < 0) return Unsound("a column has no type");
      if (open_.size() >= kMaxParquetDepth) return Unsound("its groups are too deep");
      const bool is_optional = open_.back().is_optional || element.repetition == kOptional;
      const bool is_repeated = open_.back().is_repeated || element.repetition == kRepeated;
      open_.push_back({std::move(element.name), element.num_children, is_optional, is_repeated});
      return absl::OkStatus();
    }
    return TakeLeaf(element);
  }

  absl::Status End() {
    while (!open_.empty() && open_.back().left == 0) open_.pop_back();
    if (num_elements_ == 0) return Unsound("it is empty");
    return open_.empty() ? absl::OkStatus() : Unsound("it has fewer columns than its groups say");
  }

 private:
  struct Group {
    std::string name;
    int64_t left = 0;  // of its children
    bool is_optional = false;
    bool is_repeated = false;
  };

  absl::Status TakeLeaf(Element& element) {
    if (element.type >= kNumParquetTypes)
      return Unsound(absl::StrCat("a column of type ", element.type));
    ParquetColumn& column = columns_.emplace_back();
    column.type = static_cast<ParquetType>(element.type);
    if (column.type == ParquetType::kFixedLenByteArray &&
        (element.type_length < 1 || element.type_length > INT32_MAX))
      return Unsound(absl::StrCat("values of ", element.type_length, " bytes"));
    column.value_bytes = ValueBytes(column.type, element.type_length);
    column.is_optional = element.repetition == kOptional;
    uint64_t path_bytes = element.name.size();
    for (size_t i = 1; i < open_.size(); ++i) {
      column.path.push_back(open_[i].name);
      path_bytes += open_[i].name.size();
    }
    // Of deep groups with long names each column would have a long path.
    path_bytes_ += path_bytes;
    if (path_bytes_ > kMaxParquetNameBytes) return Unsound("the paths of its columns are too long");
    column.path.push_back(element.name);
    TakeConverted(&element);
    if (open_.size() > 1 || element.repetition == kRepeated) {
      column.outside = open_.back().is_repeated || element.repetition == kRepeated
                           ? "nested columns (a list)"
                           : "nested columns (a struct)";
    } else {
      Decide(element, &column);
    }
    return absl::OkStatus();
  }

  std::vector<ParquetColumn>& columns_;
  std::vector<Group> open_;
  size_t num_elements_ = 0;
  uint64_t name_bytes_ = 0;
  uint64_t path_bytes_ = 0;
};

}  // namespace

const char* ParquetTypeName(ParquetType type) {
  constexpr const char* kNames[kNumParquetTypes] = {
      "BOOLEAN", "INT32",  "INT64",      "INT96",
      "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
  return kNames[static_cast<size_t>(type)];
}

absl::Status ReadParquetSchema(ThriftReader& reader, std::vector<ParquetColumn>* columns) {
  columns->clear();
  Builder builder(columns);
  absl::Status status;
  reader.List([&] {
    Element element;
    ReadElement(reader, &element);
    if (status.ok() && !reader.malformed()) status = builder.Take(std::move(element));
  });
  if (!status.ok()) return status;
  if (reader.malformed()) return Unsound("it is no list of columns");
  return builder.End();
}

}  // namespace penstock
