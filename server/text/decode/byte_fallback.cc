#include "base/stop_flag.h"
#include "server/text/model/byte_tokens.h"
#include "server/text/parts/parts.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

// Of a token, as StopLook counts it.
constexpr uint64_t kTokenWork = 64;

class ByteFallback final : public Decoder {
 public:
  void Apply(std::vector<std::string>* tokens) const override {
    std::vector<std::string> result;
    result.reserve(tokens->size());
    std::string bytes;
    const auto end_bytes = [&] {
      if (bytes.empty()) return;
      if (FindInvalidUtf8(bytes) == std::string_view::npos) {
        result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), "\xef\xbf\xbd");
      }
      bytes.clear();
    };
    StopLook look;
    for (std::string& token : *tokens) {
      look.Did(token.size() + kTokenWork);
      const int byte = ByteOfToken(token);
      if (byte >= 0) {
        bytes.push_back(static_cast<char>(byte));
        continue;
      }
      end_bytes();
      result.push_back(std::move(token));
    }
    end_bytes();
    *tokens = std::move(result);
  }
};

const PartRegistration<Decoder> kByteFallback("ByteFallback", MakePlain<Decoder, ByteFallback>);

}  // namespace
}  // namespace penstock::text
