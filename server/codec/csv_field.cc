#include "server/codec/csv_field.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

// Of a quotation mark that is looked for, as StopLook counts it.
constexpr uint64_t kMarkWork = 16;

// A copy with one of each two quotation marks.
absl::string_view Undoubled(absl::string_view text, Arena& arena) {
  auto* const value = reinterpret_cast<char*>(arena.Allocate(text.size()));
  size_t size = 0;
  StopLook look;
  for (size_t i = 0; i < text.size(); ++i) {
    look.Did(1);
    value[size++] = text[i];
    i += text[i] == '"';
  }
  return {value, size};
}

}  // namespace

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
  bool has_doubled = false;
  size_t end = start + 1;
  StopLook look;
  for (;; end += 2) {
    look.Did(kMarkWork);
    end = record.find('"', end);
    if (end == record.npos) {
      return absl::DataLossError(
          absl::StrCat("a quotation mark is not closed (byte ", start, " of the record)"));
    }
    if (end + 1 == record.size() || record[end + 1] != '"') break;
    has_doubled = true;
  }
  *at = end + 1;
  if (*at != record.size() && record[*at] != delim) {
    return absl::DataLossError(
        absl::StrCat("expected a delimiter after the closing quotation mark; one inside of a "
                     "field is doubled (byte ",
                     *at, " of the record)"));
  }
  *text = record.substr(start + 1, end - start - 1);
  if (has_doubled) *text = Undoubled(*text, arena);
  return absl::OkStatus();
}

}  // namespace penstock
