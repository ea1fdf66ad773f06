#include "server/codec/csv_field.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock {

absl::Status TakeCsvField(absl::string_view record, char delim, bool uses_quotes, size_t* at,
                          absl::string_view* text, Arena& arena) {
  const size_t start = *at;
  if (!uses_quotes || start == record.size() || record[start] != '"') {
    *at = std::min(record.find(delim, start), record.size());
    *text = record.substr(start, *at - start);
    const size_t mark = uses_quotes ? text->find('"') : absl::string_view::npos;
    if (mark == absl::string_view::npos) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("a field that does not begin with a quotation mark has one inside (byte ",
                     start + mark, " of the record)"));
  }
  auto* const value = reinterpret_cast<char*>(arena.Allocate(record.size() - start));
  size_t size = 0;
  for (size_t i = start + 1; i < record.size(); ++i) {
    if (record[i] != '"') {
      value[size++] = record[i];
      continue;
    }
    if (i + 1 < record.size() && record[i + 1] == '"') {
      value[size++] = record[i++];
      continue;
    }
    *at = i + 1;
    *text = absl::string_view(value, size);
    if (*at == record.size() || record[*at] == delim) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("expected a delimiter behind the closing quotation mark; one inside of a "
                     "field is doubled (byte ",
                     *at, " of the record)"));
  }
  return absl::DataLossError(
      absl::StrCat("a quotation mark is not closed (byte ", start, " of the record)"));
}

}  // namespace penstock
