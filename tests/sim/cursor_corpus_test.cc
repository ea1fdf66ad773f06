// The fuzz target of the cursor decoder over its corpus and what is near to it. (With libFuzzer:
// tests/fuzz/cursor_fuzz.cc.)
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/sim/dice.h"
#include "tests/support/catch.h"
#include "tests/support/tree.h"

extern uint64_t resumed_pipelines;
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace penstock::test {
namespace {

std::vector<std::string> Corpus() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::InTree("tests/fuzz/corpus/cursor")))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

void Try(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

TEST_CASE("No cursor near to a real one, and no counters, crash a pipeline or keep it for ever") {
  const std::vector<std::string> corpus = Corpus();
  REQUIRE(corpus.size() >= 9);
  for (const std::string& bytes : corpus) Try(bytes);
  Dice dice(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = corpus[dice.Below(corpus.size())];
    for (uint64_t changes = dice.Between(1, 4); changes > 0; --changes) {
      const size_t at = dice.Below(bytes.size());
      switch (dice.Below(4)) {
        case 0:
          bytes[at] = static_cast<char>(dice.Below(256));
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ 1 << dice.Below(8));
          break;
        case 2:
          bytes = bytes.substr(0, at + 1);
          break;
        default:
          // A counter near to an edge.
          for (size_t j = 0; j < 8 && at + j < bytes.size(); ++j)
            bytes[at + j] = dice.OneIn(2) ? '\xff' : '\x7f';
      }
    }
    Try(bytes);
  }
  CHECK(resumed_pipelines > 1000);
}

}  // namespace
}  // namespace penstock::test
