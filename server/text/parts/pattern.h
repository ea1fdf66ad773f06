// What a part replaces: a text or the matches of a regular expression.
//
// Threads:  constant after Read(); safe from any thread.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/text/parts/json_part.h"
#include "server/text/scan/regex.h"

namespace penstock::text {

class Pattern {
 public:
  // {"String": …} or {"Regex": …}.
  absl::Status Read(const JsonPart& json);
  std::string Replaced(std::string_view text, const std::string& with) const;

 private:
  std::string text_;
  std::unique_ptr<Regex> regex_;
};

}  // namespace penstock::text
