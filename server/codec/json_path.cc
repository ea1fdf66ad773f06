#include "server/codec/json_path.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

bool IsMark(char byte) { return byte == '.' || byte == '[' || byte == ']' || byte == '\\'; }

// The brackets that begin at `*at`.
absl::Status TakeBrackets(absl::string_view path, size_t* at, JsonStep* step) {
  const size_t end = path.find(']', *at);
  if (end == absl::string_view::npos)
    return absl::InvalidArgumentError("expected ] behind [, found the end");
  const absl::string_view inside = path.substr(*at + 1, end - *at - 1);
  *at = end + 1;
  if (inside.empty()) {
    step->kind = JsonStep::Kind::kEach;
    return absl::OkStatus();
  }
  step->kind = JsonStep::Kind::kPlace;
  int32_t place = 0;
  if (!absl::SimpleAtoi(inside, &place) || place < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected [] or the place of a value from 0 on, found [", inside, "]"));
  }
  step->place = place;
  return absl::OkStatus();
}

// The key that begins at `*at`, up to a dot or bracket.
absl::Status TakeKey(absl::string_view path, size_t* at, std::string* key) {
  while (*at < path.size() && path[*at] != '.' && path[*at] != '[') {
    if (path[*at] == ']')
      return absl::InvalidArgumentError(
          "found ] without [ before it; in a key it has a backslash before it");
    if (path[*at] == '\\' && ++*at == path.size())
      return absl::InvalidArgumentError("expected a character behind the backslash, found the end");
    key->push_back(path[(*at)++]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<JsonStep>> ParseJsonPath(absl::string_view path) {
  std::vector<JsonStep> steps;
  bool wants_key = true;  // at the beginning, where brackets may stand as well, and behind a dot
  for (size_t at = 0; at < path.size() || (wants_key && at > 0);) {
    if (steps.size() == JsonStep::kStepsMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected at most ", JsonStep::kStepsMax, " steps, found more"));
    }
    JsonStep step;
    if (at < path.size() && path[at] == '[' && (!wants_key || at == 0)) {
      if (absl::Status status = TakeBrackets(path, &at, &step); !status.ok()) return status;
    } else if (wants_key) {
      // Two dots have the empty key between them.
      if (absl::Status status = TakeKey(path, &at, &step.key); !status.ok()) return status;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a dot or [ behind ], found \"", path.substr(at), "\""));
    }
    steps.push_back(std::move(step));
    wants_key = at < path.size() && path[at] == '.';
    if (wants_key) ++at;
  }
  return steps;
}

void AppendJsonStep(const JsonStep& step, bool first, std::string* path) {
  switch (step.kind) {
    case JsonStep::Kind::kKey:
      if (!first) path->push_back('.');
      for (const char byte : step.key) {
        if (IsMark(byte)) path->push_back('\\');
        path->push_back(byte);
      }
      break;
    case JsonStep::Kind::kEach:
      path->append("[]");
      break;
    case JsonStep::Kind::kPlace:
      absl::StrAppend(path, "[", step.place, "]");
      break;
  }
}

}  // namespace penstock
