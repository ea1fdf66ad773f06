#include "server/codec/packed_varints.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "server/codec/wire.h"
#include "tests/codec/example_messages.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

// One varint after another.
bool ReadSingly(const std::string& run, std::vector<uint64_t>* values) {
  const auto* p = reinterpret_cast<const uint8_t*>(run.data());
  const uint8_t* const end = p + run.size();
  while (p < end) {
    uint64_t value;
    if ((p = wire::ReadVarint(p, end, &value)) == nullptr) return false;
    values->push_back(value);
  }
  return true;
}

TEST_CASE("packed varints are what they are one by one, at all lengths and whatever follows") {
  std::mt19937_64 random(31);
  int whole = 0, malformed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string run;
    const uint64_t kind = random() % 4;
    for (uint64_t n = random() % 40; n > 0; --n) {
      run +=
          Varint(random() >> (kind == 0 ? 57 : random() % 64), kind == 3 ? random() % 10 + 1 : 1);
    }
    if (i % 3 == 0 && !run.empty()) run[random() % run.size()] ^= static_cast<char>(0x80);
    // A block of its own, so that a sanitizer sees any overrun, with a few bytes behind the run.
    const size_t behind = random() % 10;
    const std::unique_ptr<uint8_t[]> data(new uint8_t[run.size() + behind]);
    for (size_t b = 0; b < run.size() + behind; ++b)
      data[b] = b < run.size() ? static_cast<uint8_t>(run[b]) : static_cast<uint8_t>(random());
    const uint8_t* const end = data.get() + run.size();

    std::vector<uint64_t> wanted;
    const bool is_run = ReadSingly(run, &wanted);
    std::vector<uint64_t> values(CountPackedVarints(data.get(), end), 0);
    CAPTURE(i, run.size(), behind);
    REQUIRE(CheckPackedVarints(data.get(), end) == is_run);
    REQUIRE(ReadPackedVarints(data.get(), end, end + behind, values.data()) == is_run);
    if (is_run) REQUIRE(values == wanted);
    ++(is_run ? whole : malformed);
  }
  CHECK(whole > 5000);
  CHECK(malformed > 500);
}

}  // namespace
}  // namespace penstock::testing
