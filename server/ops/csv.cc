#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "io/record/csv_format.h"
#include "server/codec/csv_field.h"
#include "server/codec/number_text.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/file_records.h"

namespace penstock {
namespace {

struct CsvField {
  int64_t column = 0;  // of the record
  DType dtype = DType::kString;
  std::optional<std::string> missing;  // bytes of the value
};

struct CsvFormat {
  std::vector<CsvField> fields;
  bool selects = false;  // further columns are passed over
  char delim = ',';
  bool uses_quotes = true;
  std::string na_value;
};

template <typename T>
std::string BytesOf(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Parses a record's fields, as tf.data.experimental.CsvDataset does.
class ParseCsv final : public WorkOp {
 public:
  ParseCsv(CsvFormat format, Signature output)
      : format_(std::move(format)), output_(std::move(output)) {}

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      if (output_[i].type.dtype == DType::kString) {
        out[i] = Column{};
        out[i].rows = arena.AllocateArray<RowBytes>(rows);
      } else {
        out[i].row_bytes = DTypeSize(output_[i].type.dtype);
        if (out[i].data == nullptr) out[i].data = arena.Allocate(rows * out[i].row_bytes);
      }
    }
    for (int row = 0; row < rows; ++row) {
      const absl::string_view record(reinterpret_cast<const char*>(in[0].row(row)),
                                     in[0].row_size(row));
      absl::Status status = ParseRecord(record, row, out, arena);
      if (!status.ok()) return {std::move(status), row};
    }
    return {};
  }

 private:
  absl::Status ParseRecord(absl::string_view record, int row, absl::Span<Column> out,
                           Arena& arena) const {
    size_t at = 0;    // of the record
    size_t next = 0;  // of format_.fields
    for (int64_t column = 0;; ++column) {
      absl::string_view text;
      const bool wanted = next < format_.fields.size() && format_.fields[next].column == column;
      if (!wanted && !format_.selects) {
        return absl::DataLossError(absl::StrCat("expected ", format_.fields.size(),
                                                " fields, found more (byte ", at,
                                                " of the record)"));
      }
      const size_t start = at;
      if (absl::Status status =
              TakeCsvField(record, format_.delim, format_.uses_quotes, &at, &text, arena);
          !status.ok())
        return status;
      if (wanted) {
        if (absl::Status status = Put(next, column, text, start, row, out, arena); !status.ok())
          return status;
        ++next;
      }
      if (at == record.size()) break;
      ++at;  // the delimiter
    }
    if (next == format_.fields.size()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("expected ", format_.fields.back().column + 1,
                                            " fields, found fewer (byte ", record.size(),
                                            " of the record)"));
  }

  absl::Status Put(size_t feature, int64_t column, absl::string_view text, size_t start, int row,
                   absl::Span<Column> out, Arena& arena) const {
    const CsvField& field = format_.fields[feature];
    const auto where = [&] {
      return absl::StrCat(" (field ", column, ", byte ", start, " of the record)");
    };
    const bool is_missing = text.empty() || (!format_.na_value.empty() && text == format_.na_value);
    if (is_missing && !field.missing)
      return absl::DataLossError(absl::StrCat("a required field is missing", where()));
    if (field.dtype == DType::kString) {
      if (is_missing) text = *field.missing;
      // Behind a string there must be room for loads of whole vectors.
      uint8_t* const bytes = arena.Allocate(text.size());
      if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
      const_cast<RowBytes*>(out[feature].rows)[row] = {bytes, text.size()};
      return absl::OkStatus();
    }
    uint8_t* const to = out[feature].data + row * out[feature].row_bytes;
    if (is_missing) {
      std::memcpy(to, field.missing->data(), field.missing->size());
      return absl::OkStatus();
    }
    if (ReadNumber(text, field.dtype, to)) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("expected a value of ", DTypeName(field.dtype),
                                            ", found \"", text.substr(0, 40), "\"", where()));
  }

  const CsvFormat format_;
  const Signature output_;
};

// The value of a missing field.
absl::StatusOr<std::optional<std::string>> ReadDefault(const v1::CsvColumn& column, DType dtype) {
  switch (column.default_case()) {
    case v1::CsvColumn::DEFAULT_NOT_SET:
      return std::nullopt;
    case v1::CsvColumn::kStringValue:
      if (dtype == DType::kString) return column.string_value();
      break;
    case v1::CsvColumn::kIntValue:
      if (dtype == DType::kInt64) return BytesOf(column.int_value());
      if (dtype == DType::kInt32 && column.int_value() == static_cast<int32_t>(column.int_value()))
        return BytesOf(static_cast<int32_t>(column.int_value()));
      break;
    case v1::CsvColumn::kFloatValue:
      if (dtype == DType::kFloat32) return BytesOf(static_cast<float>(column.float_value()));
      if (dtype == DType::kFloat64) return BytesOf(column.float_value());
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected a default that is a value of ", DTypeName(dtype)));
}

absl::Status ReadColumns(const v1::Csv& options, CsvFormat* format, Signature* output,
                         std::string* structure) {
  if (options.column().empty())
    return absl::InvalidArgumentError("column: expected at least one, found none");
  const bool named = !options.column(0).name().empty();
  std::set<std::string> names;
  for (int i = 0; i < options.column_size(); ++i) {
    const v1::CsvColumn& column = options.column(i);
    const std::string where = absl::StrCat("column ", i, ": ");
    CsvField field;
    field.column = options.select_col().empty() ? i : options.select_col(i);
    const std::optional<DType> dtype = DTypeFromName(column.dtype());
    if (!dtype ||
        (*dtype != DType::kFloat32 && *dtype != DType::kFloat64 && *dtype != DType::kInt32 &&
         *dtype != DType::kInt64 && *dtype != DType::kString)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "dtype: expected float32, float64, int32, int64 or string, found \"",
                       column.dtype(), "\""));
    }
    field.dtype = *dtype;
    absl::StatusOr<std::optional<std::string>> missing = ReadDefault(column, *dtype);
    if (!missing.ok())
      return absl::InvalidArgumentError(absl::StrCat(where, missing.status().message()));
    field.missing = *std::move(missing);
    if (named != !column.name().empty() || (named && !names.insert(column.name()).second)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "expected a name of its own for each column, or for none, found \"",
                       column.name(), "\""));
    }
    Feature feature;
    feature.name = named ? column.name() : absl::StrCat(i);
    feature.type.dtype = *dtype;
    output->push_back(std::move(feature));
    format->fields.push_back(std::move(field));
    absl::StrAppend(structure, i == 0 ? "[" : ",", "null");
  }
  *structure = named ? "" : *structure + "]";
  return absl::OkStatus();
}

absl::Status ReadFormat(const v1::Csv& options, CsvFormat* format) {
  const std::string delim = options.field_delim().empty() ? "," : options.field_delim();
  if (delim.size() != 1 || delim == "\"" || delim == "\n" || delim == "\r") {
    return absl::InvalidArgumentError(
        absl::StrCat("field_delim: expected one character that is neither a quotation mark nor a "
                     "line end, found \"",
                     delim, "\""));
  }
  format->delim = delim[0];
  format->uses_quotes = !options.has_use_quote_delim() || options.use_quote_delim();
  format->na_value = options.na_value();
  const auto& selected = options.select_col();
  format->selects = !selected.empty();
  if (format->selects && selected.size() != options.column_size()) {
    return absl::InvalidArgumentError(absl::StrCat("select_col: expected one for each column, ",
                                                   options.column_size(), " in all, found ",
                                                   selected.size()));
  }
  for (int i = 0; i < selected.size(); ++i) {
    if (selected[i] >= 0 && (i == 0 || selected[i - 1] < selected[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "select_col: expected rising numbers from 0 on, found ", selected[i], " at place ", i));
  }
  return absl::OkStatus();
}

const OpRegistration<v1::Csv> kCsv(
    "csv", {.place = OpPlace::kSource, .files = v1::Csv::kFilesFieldNumber},
    [](const v1::Csv& options, PlanBuilder& plan) -> absl::Status {
      CsvFormat format;
      Signature output;
      std::string structure;
      absl::Status status = ReadFormat(options, &format);
      if (status.ok()) status = ReadColumns(options, &format, &output, &structure);
      if (!status.ok()) return status;
      FileRecordsOptions records;
      records.format.stream.format = CsvRecordFormat({.field_delim = format.delim,
                                                      .uses_quotes = format.uses_quotes,
                                                      .skips_header = options.header()});
      absl::StatusOr<Compression> compression = CompressionFromName(options.compression());
      if (!compression.ok()) return compression.status();
      records.format.compression = *compression;
      status = PlanFileRecords(options.files(), records, plan);
      if (!status.ok()) return status;
      plan.AddWork(std::make_unique<ParseCsv>(std::move(format), std::move(output)), structure);
      plan.MarkStageAsOrder();
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
