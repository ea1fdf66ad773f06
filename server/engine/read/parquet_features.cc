#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/signature.h"
#include "io/file/damage.h"
#include "server/engine/read/parquet_loader.h"

namespace penstock {
namespace {

// The number of the column of that name; of a nested one that of its first leaf.
absl::StatusOr<uint32_t> ColumnOf(const ParquetFooter& footer, const std::string& name) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < footer.columns().size(); ++i) {
    const std::string& found = footer.columns()[i].path[0];
    if (found == name) return i;
    if (names.empty() || names.back() != found) names.push_back(found);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no \"", name, "\"", DidYouMean(name, names), "; there are: ", ListNames(names)));
}

ArrowType TypeOf(const ParquetColumn& column) {
  ArrowType type;
  type.bits = static_cast<int32_t>(8 * DTypeSize(column.dtype));
  switch (column.dtype) {
    case DType::kString:
      type.kind = ArrowKind::kBinary;
      type.bits = 0;
      return type;
    case DType::kBool:
      type.kind = ArrowKind::kBool;
      return type;
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      type.kind = ArrowKind::kFloatingPoint;
      return type;
    default:
      break;
  }
  type.kind = ArrowKind::kInt;
  type.is_signed = column.dtype == DType::kInt8 || column.dtype == DType::kInt16 ||
                   column.dtype == DType::kInt32 || column.dtype == DType::kInt64;
  return type;
}

// Its columns as Arrow's; those that are not read here are of no type that a feature may have.
ArrowSchema SchemaOf(const ParquetFooter& footer) {
  ArrowSchema schema;
  for (const ParquetColumn& column : footer.columns()) {
    if (column.path.size() > 1 && !schema.fields.empty() &&
        schema.fields.back().name == column.path[0])
      continue;
    ArrowField& field = schema.fields.emplace_back();
    field.name = column.path[0];
    if (column.dtype != DType::kInvalid) field.type = TypeOf(column);
  }
  return schema;
}

absl::Status OfFeature(const std::string& name, const absl::Status& status) {
  return WithMessage(status, absl::StrCat("feature \"", name, "\": ", status.message()));
}

absl::StatusOr<uint32_t> ReadColumnOf(const ParquetFooter& footer, const std::string& name) {
  absl::StatusOr<uint32_t> column = ColumnOf(footer, name);
  if (!column.ok()) return column;
  if (absl::Status status = footer.CheckColumn(*column); !status.ok()) return status;
  return column;
}

}  // namespace

absl::StatusOr<std::vector<ArrowFeature>> PlanParquetFeatures(
    const google::protobuf::RepeatedPtrField<v1::ArrowFeature>& wanted,
    const ParquetFooter& footer) {
  // First, so that it is told why a column is not read here.
  for (const v1::ArrowFeature& feature : wanted) {
    const std::string& column = feature.has_column() ? feature.column() : feature.name();
    absl::StatusOr<std::vector<std::string>> path = ParseArrowPath(column);
    if (!path.ok() || path->empty()) continue;
    const absl::StatusOr<uint32_t> found = ReadColumnOf(footer, (*path)[0]);
    if (!found.ok()) return OfFeature(feature.name(), found.status());
  }
  for (size_t i = 0; wanted.empty() && i < footer.columns().size(); ++i) {
    if (absl::Status status = footer.CheckColumn(i); !status.ok()) return status;
  }
  return PlanArrowFeatures(wanted, SchemaOf(footer));
}

absl::StatusOr<std::vector<uint32_t>> ParquetColumnsOf(const std::vector<ArrowFeature>& features,
                                                       const ParquetFooter& footer) {
  std::vector<uint32_t> columns;
  for (const ArrowFeature& feature : features) {
    absl::StatusOr<uint32_t> column = ReadColumnOf(footer, feature.path[0]);
    if (!column.ok()) return OfFeature(feature.name, column.status());
    const ParquetColumn& found = footer.columns()[*column];
    const DType wanted = feature.column.dtype;
    if (!feature.is_null && found.dtype != wanted) {
      return OfFeature(feature.name, absl::InvalidArgumentError(absl::StrCat(
                                         "the column is of another type than in the first file: ",
                                         found.type_name, ", expected ", DTypeName(wanted))));
    }
    columns.push_back(*column);
  }
  return columns;
}

}  // namespace penstock
