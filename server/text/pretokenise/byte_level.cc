#include "base/stop_flag.h"
#include "server/text/parts/byte_letters.h"
#include "server/text/pretokenise/behaviour.h"
#include "server/text/scan/published.h"

namespace penstock::text {
namespace {

// As StopLook counts them.
constexpr uint64_t kPieceWork = 64;
constexpr uint64_t kLetterWork = 8;

// Cuts as GPT-2 does, and writes bytes as letters.
class ByteLevel final : public Pretokenizer {
 public:
  ByteLevel(bool adds_space, bool cuts) : adds_space_(adds_space), cuts_(cuts) {}

  void Cut(PieceList& pieces) const override {
    const PublishedPattern& gpt2 = *FindPatternByName("gpt2");
    StopLook look;
    pieces.ForEach([&](const Piece& piece, PieceList& list) {
      Piece whole = piece;
      if (adds_space_ && piece.text[0] != ' ')
        whole.text = list.Keep(std::string(" ").append(piece.text));
      const auto put = [&](std::string_view text, bool begins) {
        look.Did(kPieceWork + text.size() * kLetterWork);
        list.Add({list.raw_bytes() ? text : list.Keep(ToByteLetters(text)), begins});
      };
      if (!cuts_) return put(whole.text, whole.begins);
      const auto* const begin = reinterpret_cast<const uint8_t*>(whole.text.data());
      const uint8_t* const end = begin + whole.text.size();
      for (const uint8_t* at = begin; at < end;) {
        const uint8_t* const next = gpt2.next(at, end);
        put(whole.text.substr(static_cast<size_t>(at - begin), static_cast<size_t>(next - at)),
            whole.begins && at == begin);
        at = next;
      }
    });
  }

  const PublishedPattern* pattern() const override {
    return cuts_ && !adds_space_ ? FindPatternByName("gpt2") : nullptr;
  }
  bool maps_bytes() const override { return true; }
  bool only_maps_bytes() const override { return !cuts_ && !adds_space_; }

 private:
  const bool adds_space_, cuts_;
};

absl::StatusOr<std::unique_ptr<Pretokenizer>> Make(const JsonPart& json) {
  // Offsets are none of a tokenizer's ids.
  absl::Status status = json.OnlyMembers({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  bool adds_space = true, cuts = true;
  if (status.ok()) status = json["add_prefix_space"].Read(&adds_space);
  if (status.ok()) status = json["use_regex"].Read(&cuts);
  if (!status.ok()) return status;
  return std::make_unique<ByteLevel>(adds_space, cuts);
}

const PartRegistration<Pretokenizer> kByteLevel("ByteLevel", Make);

}  // namespace
}  // namespace penstock::text
