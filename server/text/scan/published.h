// Which published pattern a regular expression is, and the loop that cuts and encodes by it in one
// go.
//
// Threads:  constant.
#pragma once

#include <string_view>

#include "server/text/bpe/byte_bpe.h"

namespace penstock::text {

struct PublishedPattern {
  std::string_view name;
  // The end of the match that begins at `at`.
  const uint8_t* (*next)(const uint8_t* at, const uint8_t* end);
  // Appends the ids of all words. Looks for a stop. REQUIRES: valid UTF-8.
  void (*encode)(const ByteBpe& bpe, std::string_view text, WordCache& cache, IdBuffer& out);
};

// By the text of the regular expression, in one of the forms in which files have it; null for any
// other.
const PublishedPattern* FindPublishedPattern(std::string_view regex);
// By its name: "gpt2", "r50k_base", "p50k_base", "cl100k_base", "o200k_base", "llama3", "qwen2";
// null for any other.
const PublishedPattern* FindPatternByName(std::string_view name);

}  // namespace penstock::text
