// The tokens <0x00> to <0xFF>, by which models say bytes for which they have nothing else.
//
// Threads:  functions without state.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "server/text/bpe/id_buffer.h"
#include "server/text/parts/vocabulary.h"

namespace penstock::text {

using ByteTokens = std::array<std::optional<uint32_t>, 256>;

ByteTokens FindByteTokens(const TokenTable& tokens);

// Appends the ids of a text's bytes; false, and nothing is appended, where one has no token.
bool AppendBytes(const ByteTokens& tokens, std::string_view text, IdBuffer& out);

// The byte that a token says, else -1.
int ByteOfToken(std::string_view token);

}  // namespace penstock::text
