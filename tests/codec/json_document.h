// Decodes one field of one document.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/arena.h"
#include "google/protobuf/text_format.h"
#include "server/codec/json_decoder.h"
#include "tests/support/catch.h"

namespace penstock::test {

// A row: as it lies in the column, and its sizes.
struct JsonRow {
  std::string bytes;
  std::vector<int64_t> dims;
};

// `feature`: a v1::JsonFeature as text. The document's memory ends where it ends, but for the
// padding.
inline absl::StatusOr<JsonRow> DecodeJsonField(const std::string& feature,
                                               const std::string& document, JsonErrors errors,
                                               bool batched = false) {
  v1::DecodeJson options;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(feature, options.add_feature()));
  absl::StatusOr<std::vector<JsonField>> fields = PlanJsonFields(options.feature(), batched);
  if (!fields.ok()) return fields.status();
  const JsonDecoder decoder(*std::move(fields), errors);
  const JsonField& field = decoder.fields()[0];
  static thread_local JsonScratch scratch;
  Arena arena;
  uint8_t* const text = arena.Allocate(document.size());
  std::copy(document.begin(), document.end(), text);
  std::vector<uint8_t> dense(field.row_values * 8);
  std::vector<int64_t> dims(field.shape.size(), -7);
  RowBytes row;
  JsonDecoder::Target target;
  if (field.is_dense()) {
    target.to = dense.data();
  } else {
    target.row = &row;
    if (field.list_axes > 0 && !field.type.packed()) target.dims = dims.data();
  }
  const absl::Status status = decoder.Decode({reinterpret_cast<const char*>(text), document.size()},
                                             absl::MakeConstSpan(&target, 1), arena, scratch);
  if (!status.ok()) return status;
  if (field.is_dense()) row = {dense.data(), field.row_values * DTypeSize(field.type.dtype)};
  return JsonRow{std::string(reinterpret_cast<const char*>(row.data), row.size), dims};
}

}  // namespace penstock::test
