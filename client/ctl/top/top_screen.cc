#include "client/ctl/top/top_screen.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"

namespace penstock::ctl {
namespace {

using Kind = TopLine::Kind;

constexpr char kPlain[] = "\x1b[0m";
constexpr char kWipeLine[] = "\x1b[K";
constexpr char kKeys[] = "q quit  ↑↓ choose  Enter it alone  space hold  + - interval";

const char* StyleOf(Kind kind) {
  switch (kind) {
    case Kind::kDaemon:
    case Kind::kHead:
      return "\x1b[2m";
    case Kind::kPipeline:
      return "\x1b[1m";
    case Kind::kError:
      return "\x1b[31m";
    case Kind::kSentence:
      return "\x1b[36m";
    case Kind::kWarning:
      return "\x1b[33m";
    case Kind::kBottleneck:
      return "\x1b[1;33m";
    case Kind::kPlain:
    case Kind::kStage:
    case Kind::kLane:
      return "";
  }
  return "";
}

// Of one character of a bar, or of a lane; null: that of its line.
const char* StyleOf(Kind kind, std::string_view character) {
  if (kind == Kind::kStage || kind == Kind::kBottleneck) {
    if (character == "█") return kind == Kind::kStage ? "\x1b[32m" : "\x1b[31m";
    if (character == "·") return "\x1b[2m";
  }
  if (kind != Kind::kLane) return nullptr;
  if (character == "▁" || character == "▂") return "\x1b[32m";
  if (character == "▃" || character == "▄" || character == "▅") return "\x1b[33m";
  if (character == "▆" || character == "▇" || character == "█") return "\x1b[31m";
  return nullptr;
}

size_t CharacterBytes(unsigned char first) {
  if (first < 0xc0) return 1;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

// A line of at most so many columns.
std::string Styled(Kind kind, std::string_view text, size_t columns, const std::string& style,
                   bool colours) {
  std::string out = colours ? style : "";
  const char* now = nullptr;
  size_t column = 0;
  for (size_t at = 0; at < text.size() && column < columns; ++column) {
    const std::string_view character =
        text.substr(at, CharacterBytes(static_cast<unsigned char>(text[at])));
    at += character.size();
    if (colours) {
      const char* const wanted = StyleOf(kind, character);
      if (wanted != now) absl::StrAppend(&out, kPlain, wanted == nullptr ? style.c_str() : wanted);
      now = wanted;
    }
    out += character;
  }
  if (colours) out += kPlain;
  return out;
}

// The line that is shown first, so that the chosen head is seen, and as much below it as fits.
size_t FirstLine(const std::vector<TopLine>& lines, size_t head, size_t rows) {
  if (lines.size() <= rows) return 0;
  return std::min(head, lines.size() - rows);
}

}  // namespace

std::string TopScreen(const std::vector<TopLine>& lines, const TopView& view) {
  std::vector<size_t> heads;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].kind == Kind::kPipeline) heads.push_back(i);
  }
  const size_t head = heads.empty() ? 0 : heads[std::min(view.chosen, heads.size() - 1)];
  // The last row is the bar's; where there is none it stays empty, since an end of line there would
  // scroll.
  const size_t rows = std::max<size_t>(view.rows, 2) - 1;
  std::string out = "\x1b[H";
  size_t shown = 0;
  for (size_t i = FirstLine(lines, head, rows); i < lines.size() && shown < rows; ++i, ++shown) {
    const TopLine& line = lines[i];
    std::string style = StyleOf(line.kind);
    // Of one alone it is plain which.
    if (line.kind == Kind::kPipeline && i == head && heads.size() > 1) style += "\x1b[7m";
    absl::StrAppend(&out,
                    Styled(line.kind, ShownText(line.text), view.columns, style, view.colours),
                    kWipeLine, "\n");
  }
  out += "\x1b[J";
  if (!view.has_keys) return out;
  const std::string bar = absl::StrCat(kKeys, view.notice.empty() ? "" : "   ", view.notice);
  return absl::StrCat(
      out, "\x1b[", rows + 1, ";1H",
      Styled(Kind::kHead, ShownText(bar), view.columns, StyleOf(Kind::kHead), view.colours),
      kWipeLine);
}

}  // namespace penstock::ctl
