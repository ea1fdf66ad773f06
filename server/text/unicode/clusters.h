// Where the characters of a text end as a reader sees them: extended grapheme clusters.
//
// Threads:  safe from any thread; looks for a stop.
// Cost:     a look-up for each code point.
// Source:   Unicode Standard Annex 29; the classes are those of the library that tokenizers are
//           published for (make_tables.py).
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::text {

// How many bytes the first cluster of [at, end) has. REQUIRES: valid UTF-8, and at least one byte.
size_t ClusterBytes(const uint8_t* at, const uint8_t* end);

}  // namespace penstock::text
