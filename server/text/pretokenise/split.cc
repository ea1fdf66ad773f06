#include "absl/strings/str_cat.h"
#include "server/text/pretokenise/behaviour.h"
#include "server/text/scan/published.h"
#include "server/text/scan/regex.h"

namespace penstock::text {
namespace {

// At the matches of a text or a regular expression.
class Split final : public Pretokenizer {
 public:
  Split(std::string text, std::unique_ptr<Regex> regex, const PublishedPattern* published,
        Behaviour behaviour, bool invert)
      : text_(std::move(text)),
        regex_(std::move(regex)),
        published_(published),
        behaviour_(behaviour),
        invert_(invert) {}

  void Cut(PieceList& pieces) const override {
    std::vector<Stretch> stretches;
    pieces.ForEach([&](const Piece& piece, PieceList& list) {
      stretches.clear();
      size_t open = 0;
      ForEachMatch(piece.text, [&](size_t from, size_t to) {
        if (open < from) stretches.push_back({open, from, invert_});
        stretches.push_back({from, to, !invert_});
        open = to;
      });
      if (open < piece.text.size()) stretches.push_back({open, piece.text.size(), invert_});
      CutBy(piece, stretches, behaviour_, list);
    });
  }

  const PublishedPattern* pattern() const override {
    // Its matches lie side by side, so that nothing stands between them.
    const bool keeps =
        behaviour_ == Behaviour::kIsolated || (behaviour_ == Behaviour::kRemoved && invert_);
    return keeps ? published_ : nullptr;
  }

 private:
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

  const std::string text_;
  const std::unique_ptr<Regex> regex_;
  const PublishedPattern* const published_;
  const Behaviour behaviour_;
  const bool invert_;
};

absl::StatusOr<std::unique_ptr<Pretokenizer>> Make(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type", "pattern", "behavior", "invert"});
      !status.ok())
    return status;
  Behaviour behaviour;
  bool invert = false;
  if (absl::Status status = ReadBehaviour(json["behavior"], &behaviour); !status.ok())
    return status;
  if (absl::Status status = json["invert"].Read(&invert); !status.ok()) return status;
  const JsonPart pattern = json["pattern"];
  if (absl::Status status = pattern.OnlyMembers({"String", "Regex"}); !status.ok()) return status;
  std::string text, regex;
  if (absl::Status status = pattern["String"].Read(&text); !status.ok()) return status;
  if (absl::Status status = pattern["Regex"].Read(&regex); !status.ok()) return status;
  if (text.empty() == regex.empty())
    return pattern.Refuse("either \"String\" or \"Regex\", not empty");
  const PublishedPattern* const published = FindPublishedPattern(regex);
  std::unique_ptr<Regex> compiled;
  if (!regex.empty() && published == nullptr) {
    auto made = Regex::Make(regex);
    if (!made.ok())
      return absl::InvalidArgumentError(
          absl::StrCat(pattern["Regex"].path(), ": ", made.status().message()));
    compiled = *std::move(made);
  }
  return std::make_unique<Split>(std::move(text), std::move(compiled), published, behaviour,
                                 invert);
}

const PartRegistration<Pretokenizer> kSplit("Split", Make);

}  // namespace
}  // namespace penstock::text
