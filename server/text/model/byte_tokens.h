// The tokens <0x00> to <0xFF>, by which models say bytes for which they have nothing else.
//
// Threads:  functions without state.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "server/text/bpe/id_buffer.h"

namespace penstock::text {

using ByteTokens = std::array<std::optional<uint32_t>, 256>;

// `id_of(token)`: as Model::IdOf() has it.
template <typename IdOf>
ByteTokens FindByteTokens(IdOf id_of) {
  ByteTokens found;
  for (int byte = 0; byte < 256; ++byte) found[byte] = id_of(absl::StrFormat("<0x%02X>", byte));
  return found;
}

// Appends the ids of a text's bytes; false, and nothing is appended, where one has no token.
bool AppendBytes(const ByteTokens& tokens, std::string_view text, IdBuffer& out);

// The byte that a token says, else -1.
int ByteOfToken(std::string_view token);

}  // namespace penstock::text
