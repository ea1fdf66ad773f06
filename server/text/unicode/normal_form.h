// The four normal forms of Unicode, and lower case, by the tables of make_tables.py.
//
// Threads:  safe from any thread.
// Cost:     text that is in its normal form already is gone through once.
// Source:   Unicode Standard Annex 15; the tables are those of the library that tokenizers are
//           published for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::text {

enum class NormalForm : uint8_t { kNfd, kNfkd, kNfc, kNfkc };

// REQUIRES: valid UTF-8.
std::string Normalized(std::string_view text, NormalForm form);
std::string Lowercased(std::string_view text);

}  // namespace penstock::text
