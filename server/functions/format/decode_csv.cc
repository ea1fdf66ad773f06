#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/codec/csv_field.h"
#include "server/codec/number_text.h"
#include "server/expr/arguments.h"
#include "server/expr/each_string.h"
#include "server/expr/scalar_type.h"

namespace penstock::expr {
namespace {

constexpr int64_t kColumnsMax = 1 << 16;
constexpr size_t kShownBytes = 40;
// Of a field beside its bytes, as StopLook counts it.
constexpr uint64_t kFieldWork = 32;

struct Format {
  int64_t column = 0;
  int64_t num_columns = 0;
  DType dtype = DType::kString;
  bool required = true;
  std::string missing;  // text that takes the place of a missing field
  char delim = ',';
  bool uses_quotes = true;
  std::string na_value;
};

class DecodeCsv final : public RowKernel {
 public:
  explicit DecodeCsv(Format format) : format_(std::move(format)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const absl::string_view record(reinterpret_cast<const char*>(arguments[0].data),
                                   arguments[0].bytes);
    absl::string_view text;
    size_t at = 0;
    int64_t columns = 0;
    // TensorFlow passes over line ends in front of a field, and takes them inside of quotation
    // marks alone.
    const bool has_line_ends = record.find('\n') != absl::string_view::npos ||
                               record.find('\r') != absl::string_view::npos;
    const auto is_line_end = [](char byte) { return byte == '\r' || byte == '\n'; };
    StopLook look;
    for (;; ++at) {
      if (has_line_ends)
        at = FindInPieces(record, at, [&](char byte) { return !is_line_end(byte); });
      // Behind a delimiter there is an empty field; without a byte, or behind line ends, there is
      // none: TensorFlow's verdict.
      if (at == record.size() && (record.empty() || record.back() != format_.delim)) break;
      const size_t start = at;
      const bool is_quoted = format_.uses_quotes && start < record.size() && record[start] == '"';
      absl::string_view field;
      absl::Status status =
          TakeCsvField(record, format_.delim, format_.uses_quotes, &at, &field, scratch);
      if (!status.ok()) return status;
      look.Did(field.size() + kFieldWork);
      const size_t line_end =
          has_line_ends && !is_quoted ? FindInPieces(field, 0, is_line_end) : field.size();
      if (line_end < field.size()) {
        return absl::DataLossError(
            absl::StrCat("a field that is not in quotation marks has a line end inside (byte ",
                         start + line_end, " of the record)"));
      }
      if (columns++ == format_.column) text = field;
      if (at == record.size()) break;
    }
    if (columns == 0) {
      return absl::DataLossError(
          absl::StrCat("expected ", std::max<int64_t>(format_.num_columns, 1), " fields, found 0"));
    }
    if (columns <= format_.column) {
      return absl::DataLossError(
          absl::StrCat("expected at least ", format_.column + 1, " fields, found ", columns));
    }
    if (format_.num_columns > 0 && columns != format_.num_columns) {
      return absl::DataLossError(
          absl::StrCat("expected ", format_.num_columns, " fields, found ", columns));
    }
    if (text.empty() || (!format_.na_value.empty() && text == format_.na_value)) {
      if (format_.required) {
        return absl::DataLossError(
            absl::StrCat("field ", format_.column, ": a required field is missing"));
      }
      text = format_.missing;
    }
    if (format_.dtype == DType::kString) {
      uint8_t* const to = out.Reserve(text.size());
      CopyInPieces(to, text.data(), text.size());
    } else if (!ReadNumber(text, format_.dtype, out.Reserve(DTypeSize(format_.dtype)))) {
      return absl::DataLossError(absl::StrCat("field ", format_.column, ": expected a value of ",
                                              DTypeName(format_.dtype), ", found \"",
                                              absl::CHexEscape(text.substr(0, kShownBytes)), "\""));
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const Format format_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = ReadStrings(arguments[0], "record"); !status.ok()) return status;
  Format format;
  std::string dtype, delim = ",";
  absl::Status status =
      FirstError({ReadConstant(arguments[1], "num_columns", 0, kColumnsMax, &format.num_columns),
                  ReadConstant(arguments[2], "column", 0, kColumnsMax, &format.column),
                  ReadConstant(arguments[3], "out_type", &dtype),
                  ReadConstant(arguments[4], "default", &format.missing),
                  ReadConstant(arguments[5], "field_delim", &delim),
                  ReadConstant(arguments[6], "use_quote_delim", &format.uses_quotes),
                  ReadConstant(arguments[7], "na_value", &format.na_value)});
  if (!status.ok()) return status;
  if (format.num_columns > 0 && format.column >= format.num_columns)
    return WrongArgument("column", "one of num_columns");
  format.required = !arguments[4].given;
  const std::optional<DType> type = DTypeFromName(dtype);
  uint8_t number[8];
  const bool is_number = type && ReadNumber("0", *type, number);
  if (!type || (!is_number && *type != DType::kString)) {
    return WrongArgument("out_type",
                         "\"string\", \"float32\", \"float64\", \"int32\" or \"int64\"");
  }
  format.dtype = *type;
  if (is_number && !format.required && !ReadNumber(format.missing, *type, number))
    return WrongArgument("default", absl::StrCat("the text of a value of ", dtype));
  if (delim.size() != 1 || delim == "\"" || delim == "\n" || delim == "\r")
    return WrongArgument("field_delim",
                         "one byte that is neither a quotation mark nor an end of line");
  format.delim = delim[0];
  BoundRowFunction bound;
  bound.type = ScalarType(*type);
  bound.kernel = std::make_shared<DecodeCsv>(std::move(format));
  bound.tensor_arguments = {0};
  return ForEachString(arguments[0].type.shape, std::move(bound));
}

const RowFunctionRegistration kDecodeCsv({
    .name = "decode_csv",
    .signature =
        "decode_csv(record, num_columns, column, out_type, default=None, field_delim=None, "
        "use_quote_delim=True, na_value=\"\")",
    .doc = "One field of a CSV record, as tf.io.decode_csv reads it.\n"
           "\n"
           "record: a string, or a tensor of strings that are records each.\n"
           "num_columns: how many fields the record must have, a constant; 0: any number.\n"
           "column: which of them, from 0 on, a constant.\n"
           "out_type: \"string\", \"float32\", \"float64\", \"int32\" or \"int64\", a constant.\n"
           "default: the text in the place of an empty field, a constant; without it such a field "
           "is an error.\n"
           "field_delim: what stands between fields: one byte, a constant; a comma by default.\n"
           "use_quote_delim: whether quotation marks may enclose a field, a constant.\n"
           "na_value: a text that counts as an empty field, a constant.\n"
           "\n"
           "Of the shape of record. Line ends before a field are passed over; inside of one "
           "they stand in quotation marks alone. What cannot be read is an error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
