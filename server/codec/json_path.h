// Where a value stands in a JSON document: "user.name", "messages[].content", "scores[2]".
//
// Keys are joined by dots. "[]" stands for each value of a list, "[N]" for the one at place N. The
// empty path is the document itself. A backslash makes the next character part of a key.
//
// Threads:  any; no state.
// Limits:   kStepsMax steps; places below 2^31.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {

struct JsonStep {
  enum class Kind : uint8_t { kKey, kEach, kPlace };
  static constexpr size_t kStepsMax = 64;

  Kind kind = Kind::kKey;
  std::string key;
  int64_t place = 0;

  bool operator==(const JsonStep&) const = default;
};

// InvalidArgument that says what is wrong with the path, without its text.
absl::StatusOr<std::vector<JsonStep>> ParseJsonPath(absl::string_view path);

// A step as a path has it; in front of a key a dot, unless it is the first step.
void AppendJsonStep(const JsonStep& step, bool first, std::string* path);

}  // namespace penstock
