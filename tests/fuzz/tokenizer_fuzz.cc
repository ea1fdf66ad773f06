// Any file of a tokenizer, and any text behind it: an error, or ids that can be made text again. A
// zero byte stands between the two. Fault 21d.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "server/text/tokenizer.h"
#include "server/text/unicode/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::text;  // NOLINT: a program
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t end = bytes.find('\0');
  if (end == std::string_view::npos) return 0;
  const std::string_view file = bytes.substr(0, end);
  const auto tokenizer = !file.empty() && file[0] == '{' ? MakeJsonTokenizer(file)
                                                         : MakeRankTokenizer(file, {"cl100k_base"});
  if (!tokenizer.ok()) return 0;
  const std::string text =
      penstock::ReplaceNoUtf8({bytes.data() + end + 1, bytes.size() - end - 1});
  if (FindInvalidUtf8(text) != std::string_view::npos) std::abort();
  const auto scratch = (*tokenizer)->Borrow();
  const auto other = (*tokenizer)->Borrow();
  const absl::Status status = (*tokenizer)->Encode(text, {}, *scratch);
  // Out of the cache of words they are the same.
  if ((*tokenizer)->Encode(text, {}, *other).ok() != status.ok()) std::abort();
  if (status.ok() && (*scratch).ids.span() != (*other).ids.span()) std::abort();
  if (status.ok() && !(*tokenizer)->Encode(text, {}, *scratch).ok()) std::abort();
  if (status.ok() && (*scratch).ids.span() != (*other).ids.span()) std::abort();
  std::string again;
  // Ids of a forged template may be none of the model's.
  (*tokenizer)->Decode((*scratch).ids.span(), false, true, &again).IgnoreError();
  return 0;
}
