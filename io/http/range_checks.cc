#include "io/http/range_checks.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

absl::Status Replaced(const std::string& what, const char* by) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the object was replaced since the pipeline was created: another ", by, " (", what, ")"));
}

}  // namespace

absl::Status CheckRange(const HttpResponse& response, const ObjectState& state, uint64_t offset,
                        uint64_t bytes, const std::string& what) {
  const absl::string_view coding = response.Header("content-encoding");
  if (!coding.empty() && coding != "identity") {
    return absl::UnimplementedError(absl::StrCat(
        "the server compresses what it sends, which was not asked for: Content-Encoding (", what,
        ")"));
  }
  const absl::string_view etag = response.Header("etag");
  if (!state.etag.empty() && !etag.empty() && etag != state.etag) return Replaced(what, "ETag");
  const absl::string_view modified = response.Header("last-modified");
  if (state.etag.empty() && !state.last_modified.empty() && !modified.empty() &&
      modified != state.last_modified) {
    return Replaced(what, "Last-Modified");
  }
  const absl::string_view generation = response.Header("x-goog-generation");
  if (!state.generation.empty() && !generation.empty() && generation != state.generation)
    return Replaced(what, "generation");
  const std::optional<ContentRange> range = ParseContentRange(response.Header("content-range"));
  const absl::string_view length_text = response.Header("content-length");
  uint64_t length = bytes;
  if (!length_text.empty() && !absl::SimpleAtoi(length_text, &length)) length = 0;
  const bool is_whole = offset == 0 && bytes == state.size;
  // The whole object needs no range.
  if (!range && response.status == 200 && is_whole && length == bytes) return absl::OkStatus();
  if (!range) {
    return absl::UnimplementedError(absl::StrCat(
        "the server gives no ranges: expected HTTP 206 with Content-Range, found HTTP ",
        response.status, " (", what, ")"));
  }
  if (range->total && *range->total != state.size) return Replaced(what, "size");
  if (range->is_unsatisfied || range->first != offset || range->last != offset + bytes - 1 ||
      length != bytes) {
    return absl::DataLossError(
        absl::StrCat("the server gives another range than was asked for: expected bytes ", offset,
                     " to ", offset + bytes - 1, ", found ", range->first, " to ", range->last,
                     " with ", length, " bytes (", what, ")"));
  }
  return absl::OkStatus();
}

}  // namespace penstock
