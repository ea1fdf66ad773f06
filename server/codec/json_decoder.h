// Decodes the declared fields of one JSON document after another.
//
// What counts is what Python's json.loads would hold: of a key that an object has twice the last,
// with all that is below it. The whole document is checked (base/json_text.h); only declared values
// are decoded. Values may stand in any order.
//
// Threads:  Decode() is safe from any thread, each with a JsonScratch of its own.
// Owns:     the fields; rows lie in the caller's memory, in the arena, or in the document itself.
// Limits:   those of JsonTokens and JsonField.
// Cost:     finding and checking the tokens (base/json_text.h), a comparison for each key of an
//           object that holds declared values, and the values. Strings without escapes are not
//           copied.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "base/json_text.h"
#include "server/codec/json_fields.h"
#include "server/codec/json_paths.h"
#include "server/codec/json_row.h"

namespace penstock {

// Worth keeping from one document to the next.
struct JsonScratch {
  JsonTokens tokens;
  std::vector<JsonValues> values;  // by field
  std::vector<size_t> found;       // by node: the token of its value in the object at hand
  std::vector<int64_t> places;     // by level: the value of the list that is looked at
};

class JsonDecoder {
 public:
  // Where a row of a field goes.
  struct Target {
    uint8_t* to = nullptr;    // of dense fields
    RowBytes* row = nullptr;  // of others
    int64_t* dims = nullptr;  // of lists that are not packed: the sizes of the row's axes
  };

  JsonDecoder(std::vector<JsonField> fields, JsonErrors errors);

  const std::vector<JsonField>& fields() const { return fields_; }

  // A document, behind which Arena::kPadding bytes may be read. DataLoss says what is wrong:
  // `feature "id" (user.id): expected int64, found the string "7" (byte 21 of the document)`.
  absl::Status Decode(absl::string_view document, absl::Span<const Target> targets, Arena& arena,
                      JsonScratch& scratch) const;

 private:
  class Walk;
  class Leaving;

  const std::vector<JsonField> fields_;
  const JsonErrors errors_;
  const JsonPaths paths_;
};

}  // namespace penstock
