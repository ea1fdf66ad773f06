// What a part looks for in texts: a text, a published pattern or another regular expression.
//
// Threads:  constant after Read(); safe from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/text/parts/json_part.h"
#include "server/text/scan/published.h"
#include "server/text/scan/regex.h"

namespace penstock::text {

class Pattern {
 public:
  // {"String": …} or {"Regex": …}.
  absl::Status Read(const JsonPart& json);

  // Null for any pattern that nobody published.
  const PublishedPattern* published() const { return published_; }

  // Calls `match(from, to)` for each match, from left to right. REQUIRES: valid UTF-8.
  template <typename Match>
  void ForEachMatch(std::string_view text, Match match) const {
    if (published_ != nullptr) {
      const auto* const begin = reinterpret_cast<const uint8_t*>(text.data());
      const uint8_t* const end = begin + text.size();
      for (const uint8_t* at = begin; at < end;) {
        const uint8_t* const next = published_->next(at, end);
        match(static_cast<size_t>(at - begin), static_cast<size_t>(next - begin));
        at = next;
      }
    } else if (regex_ != nullptr) {
      regex_->ForEachMatch(text, match);
    } else {
      for (size_t at = text.find(text_); at != std::string_view::npos;
           at = text.find(text_, at + text_.size()))
        match(at, at + text_.size());
    }
  }

 private:
  std::string text_;                             // not empty, or else
  const PublishedPattern* published_ = nullptr;  // not null, or else
  std::unique_ptr<Regex> regex_;                 // not null
};

// What the normaliser and the decoder "Replace" do: a text in the place of each match.
class Replacement {
 public:
  absl::Status Read(const JsonPart& json);
  std::string Apply(std::string_view text) const;

 private:
  Pattern pattern_;
  std::string with_;
};

}  // namespace penstock::text
