#include "server/text/pretokenise/behaviour.h"

#include <algorithm>

#include "base/stop_flag.h"

namespace penstock::text {
namespace {

// Of a piece, as StopLook counts it.
constexpr uint64_t kPieceWork = 64;

}  // namespace

absl::Status ReadBehaviour(const JsonPart& json, Behaviour* behaviour) {
  std::string name;
  if (absl::Status status = json.Read(&name); !status.ok()) return status;
  if (name == "Removed") {
    *behaviour = Behaviour::kRemoved;
  } else if (name == "Isolated") {
    *behaviour = Behaviour::kIsolated;
  } else if (name == "MergedWithPrevious") {
    *behaviour = Behaviour::kMergedWithPrevious;
  } else if (name == "MergedWithNext") {
    *behaviour = Behaviour::kMergedWithNext;
  } else if (name == "Contiguous") {
    *behaviour = Behaviour::kContiguous;
  } else {
    return json.Refuse("one of Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
  }
  return absl::OkStatus();
}

void CutBy(const Piece& piece, const std::vector<Stretch>& stretches, Behaviour behaviour,
           PieceList& pieces) {
  std::vector<std::pair<size_t, size_t>> parts;
  bool was_match = false;
  StopLook look;
  const auto put = [&](const Stretch& stretch, bool joins) {
    look.Did(kPieceWork);
    if (joins && !parts.empty()) {
      parts.back().first = std::min(parts.back().first, stretch.from);
      parts.back().second = std::max(parts.back().second, stretch.to);
    } else {
      parts.emplace_back(stretch.from, stretch.to);
    }
    was_match = stretch.is_match;
  };
  if (behaviour == Behaviour::kMergedWithNext) {
    for (auto stretch = stretches.rbegin(); stretch != stretches.rend(); ++stretch)
      put(*stretch, stretch->is_match && !was_match);
    std::reverse(parts.begin(), parts.end());
  } else {
    for (const Stretch& stretch : stretches) {
      if (behaviour == Behaviour::kRemoved && stretch.is_match) continue;
      put(stretch,
          (behaviour == Behaviour::kMergedWithPrevious && stretch.is_match && !was_match) ||
              (behaviour == Behaviour::kContiguous && stretch.is_match == was_match));
    }
  }
  for (const auto& [from, to] : parts) {
    look.Did(kPieceWork);
    pieces.Add({piece.text.substr(from, to - from), piece.begins && from == 0});
  }
}

void CutByFlag(CharFlag flag, Behaviour behaviour, PieceList& pieces) {
  const CodePointTable& flags = Flags();
  std::vector<Stretch> stretches;
  StopLook look;
  pieces.ForEach([&](const Piece& piece, PieceList& list) {
    stretches.clear();
    const auto* const begin = reinterpret_cast<const uint8_t*>(piece.text.data());
    const uint8_t* const end = begin + piece.text.size();
    size_t open = 0;
    for (const uint8_t* at = begin; at < end;) {
      uint32_t code_point;
      const uint8_t* const next = ReadCodePoint(at, &code_point);
      if (flags[code_point] & flag) {
        look.Did(kPieceWork);
        const auto from = static_cast<size_t>(at - begin), to = static_cast<size_t>(next - begin);
        if (open < from) stretches.push_back({open, from, false});
        stretches.push_back({from, to, true});
        open = to;
      }
      at = next;
    }
    if (open < piece.text.size()) stretches.push_back({open, piece.text.size(), false});
    CutBy(piece, stretches, behaviour, list);
  });
}

}  // namespace penstock::text
