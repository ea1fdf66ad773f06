#include "server/text/parts/byte_letters.h"
#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

class ByteLevel final : public Normalizer {
 public:
  void Apply(std::string* text) const override { *text = ToByteLetters(*text); }
};

const PartRegistration<Normalizer> kByteLevel("ByteLevel", MakePlain<Normalizer, ByteLevel>);

}  // namespace
}  // namespace penstock::text
