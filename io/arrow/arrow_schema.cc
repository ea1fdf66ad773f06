#include "io/arrow/arrow_schema.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr size_t kMaxNameBytes = size_t{1} << 12;
constexpr int16_t kMillisecond = 1;
constexpr const char* kUnits[] = {"s", "ms", "us", "ns"};

// The numbers of the fields in their tables.
enum SchemaField { kEndianness = 0, kFields = 1 };
enum FieldField { kName = 0, kTypeKind = 2, kType = 3, kDictionary = 4, kChildren = 5 };
enum DictionaryField { kDictionaryId = 0, kIndexType = 1 };

// The bits of a floating point number of that precision.
int32_t BitsOfPrecision(int16_t precision) {
  constexpr int32_t kBits[] = {16, 32, 64};
  return precision >= 0 && precision < 3 ? kBits[precision] : 0;
}

bool AreBitsOfInteger(int32_t bits) { return bits == 8 || bits == 16 || bits == 32 || bits == 64; }

ArrowType ReadInt(FlatTable table) {
  ArrowType type;
  type.kind = ArrowKind::kInt;
  type.bits = table.Number<int32_t>(0);
  type.is_signed = table.Number<uint8_t>(1) != 0;
  return type;
}

absl::StatusOr<ArrowType> ReadType(uint8_t kind, FlatTable table) {
  ArrowType type;
  if (kind < static_cast<uint8_t>(ArrowKind::kNull) ||
      kind > static_cast<uint8_t>(ArrowKind::kLargeListView)) {
    return absl::InvalidArgumentError(absl::StrCat("a type of unknown number ", kind));
  }
  type.kind = static_cast<ArrowKind>(kind);
  bool sound = true;
  switch (type.kind) {
    case ArrowKind::kInt:
      type = ReadInt(table);
      sound = AreBitsOfInteger(type.bits);
      break;
    case ArrowKind::kFloatingPoint:
      type.bits = BitsOfPrecision(table.Number<int16_t>(0));
      sound = type.bits != 0;
      break;
    case ArrowKind::kDate:
      type.bits = table.Number<int16_t>(0, kMillisecond) == kMillisecond ? 64 : 32;
      break;
    case ArrowKind::kTime:
      type.bits = table.Number<int32_t>(1, 32);
      type.unit = table.Number<int16_t>(0, kMillisecond);
      sound = type.bits == 32 || type.bits == 64;
      break;
    case ArrowKind::kTimestamp:
      type.bits = 64;
      type.unit = table.Number<int16_t>(0);
      break;
    case ArrowKind::kDuration:
      type.bits = 64;
      type.unit = table.Number<int16_t>(0, kMillisecond);
      break;
    case ArrowKind::kFixedSizeBinary:
    case ArrowKind::kFixedSizeList:
      type.size = table.Number<int32_t>(0);
      sound = type.size >= 0;
      break;
    case ArrowKind::kUnion:
      type.is_sparse = table.Number<int16_t>(0) == 0;
      break;
    default:
      break;
  }
  if (type.unit < 0 || static_cast<size_t>(type.unit) >= std::size(kUnits)) {
    return absl::DataLossError(
        absl::StrCat("a type ", ArrowKindName(type.kind), " of unit ", type.unit));
  }
  if (sound) return type;
  return absl::DataLossError(absl::StrCat(
      "a type ", ArrowKindName(type.kind), " of ",
      type.kind == ArrowKind::kFixedSizeBinary || type.kind == ArrowKind::kFixedSizeList
          ? absl::StrCat("size ", type.size)
          : absl::StrCat(type.bits, " bits")));
}

// How many children such a type has; -1: any number.
int Children(ArrowKind kind) {
  switch (kind) {
    case ArrowKind::kStruct:
    case ArrowKind::kUnion:
      return -1;
    case ArrowKind::kList:
    case ArrowKind::kLargeList:
    case ArrowKind::kFixedSizeList:
    case ArrowKind::kMap:
    case ArrowKind::kListView:
    case ArrowKind::kLargeListView:
      return 1;
    case ArrowKind::kRunEndEncoded:
      return 2;
    default:
      return 0;
  }
}

// How much there may still be: many fields may point at one name, and at the same fields.
struct Room {
  size_t fields = kMaxArrowFields;
  size_t name_bytes = kMaxArrowNameBytes;
};

absl::Status ReadField(FlatTable table, int depth, Room* room, ArrowField* field) {
  const absl::string_view name = table.String(kName);
  if (name.size() > kMaxNameBytes || name.size() > room->name_bytes)
    return absl::DataLossError(absl::StrCat("a column's name of ", name.size(), " bytes"));
  room->name_bytes -= name.size();
  field->name = std::string(name);
  absl::StatusOr<ArrowType> type = ReadType(table.Number<uint8_t>(kTypeKind), table.Table(kType));
  if (!type.ok()) {
    return absl::Status(type.status().code(),
                        absl::StrCat("column \"", field->name, "\": ", type.status().message()));
  }
  field->type = *type;
  if (const FlatTable dictionary = table.Table(kDictionary); dictionary.is_there()) {
    field->dictionary = dictionary.Number<int64_t>(kDictionaryId);
    const FlatTable indices = dictionary.Table(kIndexType);
    field->indices = indices.is_there() ? ReadInt(indices) : ArrowType{ArrowKind::kInt, 32};
    if (!AreBitsOfInteger(field->indices.bits)) {
      return absl::DataLossError(absl::StrCat("column \"", field->name, "\": dictionary places of ",
                                              field->indices.bits, " bits"));
    }
  }
  const FlatVector children = table.Vector(kChildren, sizeof(uint32_t));
  const int expected = Children(field->type.kind);
  if (expected >= 0 && children.size() != static_cast<uint32_t>(expected)) {
    return absl::DataLossError(absl::StrCat("column \"", field->name, "\" is a ",
                                            ArrowKindName(field->type.kind), " of ",
                                            children.size(), " columns, expected ", expected));
  }
  if (children.size() > room->fields)
    return absl::DataLossError(absl::StrCat("more columns than ", kMaxArrowFields));
  if (children.size() > 0 && depth == kMaxArrowDepth)
    return absl::DataLossError(absl::StrCat("columns in more than ", kMaxArrowDepth, " others"));
  room->fields -= children.size();
  field->children.resize(children.size());
  for (uint32_t i = 0; i < children.size(); ++i) {
    absl::Status status = ReadField(children.Table(i), depth + 1, room, &field->children[i]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

const char* ArrowKindName(ArrowKind kind) {
  static constexpr const char* kNames[] = {"null",
                                           "int",
                                           "float",
                                           "binary",
                                           "utf8",
                                           "bool",
                                           "decimal",
                                           "date",
                                           "time",
                                           "timestamp",
                                           "interval",
                                           "list",
                                           "struct",
                                           "union",
                                           "fixed_size_binary",
                                           "fixed_size_list",
                                           "map",
                                           "duration",
                                           "large_binary",
                                           "large_utf8",
                                           "large_list",
                                           "run_end_encoded",
                                           "binary_view",
                                           "utf8_view",
                                           "list_view",
                                           "large_list_view"};
  return kNames[static_cast<size_t>(kind) - 1];
}

std::string ArrowTypeName(const ArrowType& type) {
  switch (type.kind) {
    case ArrowKind::kInt:
      return absl::StrCat(type.is_signed ? "int" : "uint", type.bits);
    case ArrowKind::kFloatingPoint:
    case ArrowKind::kDate:
      return absl::StrCat(ArrowKindName(type.kind), type.bits);
    case ArrowKind::kTime:
      return absl::StrCat(ArrowKindName(type.kind), type.bits, "[", kUnits[type.unit], "]");
    case ArrowKind::kTimestamp:
    case ArrowKind::kDuration:
      return absl::StrCat(ArrowKindName(type.kind), "[", kUnits[type.unit], "]");
    case ArrowKind::kFixedSizeBinary:
    case ArrowKind::kFixedSizeList:
      return absl::StrCat(ArrowKindName(type.kind), "[", type.size, "]");
    default:
      return ArrowKindName(type.kind);
  }
}

absl::StatusOr<ArrowSchema> ReadArrowSchema(FlatBuffer& buffer, FlatTable table) {
  if (table.Number<int16_t>(kEndianness) != 0)
    return absl::InvalidArgumentError("its numbers are big-endian; expected little-endian ones");
  const FlatVector fields = table.Vector(kFields, sizeof(uint32_t));
  ArrowSchema schema;
  Room room;
  if (fields.size() > room.fields)
    return absl::DataLossError(absl::StrCat("more columns than ", kMaxArrowFields));
  room.fields -= fields.size();
  schema.fields.resize(fields.size());
  for (uint32_t i = 0; i < fields.size(); ++i) {
    absl::Status status = ReadField(fields.Table(i), 1, &room, &schema.fields[i]);
    if (!status.ok() && !buffer.malformed()) return status;
    if (!status.ok()) break;
  }
  if (buffer.malformed()) return absl::DataLossError("the schema is no sound metadata");
  return schema;
}

}  // namespace penstock
