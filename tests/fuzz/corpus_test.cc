// Each fuzz target over its corpus, over each file of it cut to half, and over no bytes at all,
// whatever the compiler: what a target finds ends the program. (libFuzzer goes on from there:
// `./dev test fuzz`.)
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace {

using FuzzTarget = int (*)(const uint8_t* data, size_t size);

// In memory of exactly that size, so that a sanitizer sees what is read beyond it.
void Try(FuzzTarget target, const std::string& bytes, size_t size) {
  const auto data = std::make_unique<uint8_t[]>(size);
  std::copy_n(bytes.begin(), size, data.get());
  target(data.get(), size);
}

void TryCorpus(const std::string& name, FuzzTarget target) {
  Try(target, "", 0);
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(PENSTOCK_FUZZ_CORPUS) + "/" + name)) {
    INFO(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    REQUIRE(file);
    Try(target, bytes, bytes.size());
    Try(target, bytes, bytes.size() / 2);
    ++files;
  }
  CHECK(files > 0);
}

}  // namespace

#define PENSTOCK_FUZZ_TARGET(name)                                     \
  extern "C" int Fuzz_##name(const uint8_t* data, size_t size);        \
  TEST_CASE("The fuzz target " #name " finds nothing in its corpus") { \
    TryCorpus(#name, Fuzz_##name);                                     \
  }

// One for each *_fuzz.cc of this folder.
#include "fuzz_targets.inc"
