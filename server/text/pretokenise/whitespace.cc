#include "base/stop_flag.h"
#include "server/text/pretokenise/behaviour.h"

namespace penstock::text {
namespace {

// Of a piece, as StopLook counts it.
constexpr uint64_t kPieceWork = 64;

// Words and runs of what is neither word nor white space: `\w+|[^\w\s]+`.
class Whitespace final : public Pretokenizer {
 public:
  void Cut(PieceList& pieces) const override {
    const CodePointTable& flags = Flags();
    StopLook look;
    pieces.ForEach([&](const Piece& piece, PieceList& list) {
      const auto* const begin = reinterpret_cast<const uint8_t*>(piece.text.data());
      const uint8_t* const end = begin + piece.text.size();
      const uint8_t* open = begin;
      uint8_t last = kBlank;
      for (const uint8_t* at = begin; at <= end;) {
        uint32_t code_point = ' ';
        const uint8_t* const next = at < end ? ReadCodePoint(at, &code_point) : end + 1;
        const uint8_t is = flags[code_point] & kWord ? kWord : flags[code_point] & kBlank;
        if (is != last || at == end) {
          look.Did(kPieceWork);
          if (last != kBlank)
            list.Add({piece.text.substr(static_cast<size_t>(open - begin),
                                        static_cast<size_t>(at - open)),
                      piece.begins && open == begin});
          open = at;
          last = is;
        }
        at = next;
      }
    });
  }
};

const PartRegistration<Pretokenizer> kWhitespace("Whitespace", MakePlain<Pretokenizer, Whitespace>);

}  // namespace
}  // namespace penstock::text
