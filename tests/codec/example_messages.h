// Serialized messages put together by hand, field by field, in forms that no ordinary writer
// chooses.
#pragma once

#include <string>

#include "tests/support/wire_bytes.h"

namespace penstock::testing {

inline std::string BytesList(const std::string& value) { return Field(1, Field(1, value)); }
inline std::string FloatList(const std::string& packed) { return Field(2, Field(1, packed)); }
inline std::string Int64List(const std::string& packed) { return Field(3, Field(1, packed)); }

inline std::string Entry(const std::string& key, const std::string& feature) {
  return Field(1, Field(1, key) + Field(2, feature));
}

inline std::string Example(const std::string& entries) { return Field(1, entries); }

}  // namespace penstock::testing
