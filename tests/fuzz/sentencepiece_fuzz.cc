// Any model of SentencePiece, and any text: an error, or ids that can be made text again. The
// text's length, of two bytes, stands first, then the text, then the model. Fault 21d.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "server/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::text;  // NOLINT: a program
  if (size < 2) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string_view given = bytes.substr(0, data[0] | data[1] << 8);
  const auto tokenizer = MakeSentencePieceTokenizer(bytes.substr(given.size()));
  if (!tokenizer.ok()) return 0;
  const std::string text = penstock::ReplaceNoUtf8({given.data(), given.size()});
  const auto scratch = (*tokenizer)->Borrow();
  const auto other = (*tokenizer)->Borrow();
  const absl::Status status = (*tokenizer)->Encode(text, {}, *scratch);
  // Out of the cache of words they are the same.
  for (int round = 0; round < 2; ++round) {
    if ((*tokenizer)->Encode(text, {}, *other).ok() != status.ok()) std::abort();
    if (status.ok() && (*scratch).ids.span() != (*other).ids.span()) std::abort();
  }
  std::string again;
  // All ids are the model's own.
  if (status.ok() && !(*tokenizer)->Decode((*scratch).ids.span(), false, true, &again).ok())
    std::abort();
  if (status.ok() && !(*tokenizer)->Decode((*scratch).ids.span(), true, false, &again).ok())
    std::abort();
  return 0;
}
