// Files under tests/golden, and the hash that golden tables hold instead of long results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/tree.h"

namespace penstock::testing {

// The bytes of tests/golden/`name`.
inline std::string ReadGolden(const std::string& name) {
  const std::string path = InTree("tests/golden/" + name);
  std::ifstream file(path, std::ios::binary);
  INFO(path);
  REQUIRE(file.is_open());
  return {std::istreambuf_iterator<char>(file), {}};
}

// FNV-1a, 64 bits.
inline uint64_t Fnv1a(const void* data, size_t size) {
  uint64_t value = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i) {
    value = (value ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3;
  }
  return value;
}

}  // namespace penstock::testing
