// Looks for Arrow files on which the reader crashes, reads beyond a buffer, or makes rows that are
// none of their types.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/support/arrow_source.h"

namespace {

using namespace penstock;

constexpr uint64_t kRows = 256;
constexpr uint32_t kBlock = 16;

void Load(test::ArrowInMemory& source, uint64_t begin, uint64_t end) {
  for (uint64_t row = begin; row < end; row += kBlock) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kBlock, end - row));
    const auto loaded = source.Load(row, count);
    if (!loaded.ok() && absl::IsInternal(loaded.status())) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = test::InMemory(std::string(reinterpret_cast<const char*>(data), size));
  for (const OnDamage on_damage : {OnDamage::kFail, OnDamage::kSkipRecord}) {
    auto source = test::ArrowInMemory::Open(file, on_damage);
    if (!source.ok()) continue;
    for (const Damage& damage : (*source)->damage) {
      if (damage.offset > size || damage.length > size - damage.offset) std::abort();
    }
    const uint64_t rows = (*source)->batches->num_rows();
    Load(**source, 0, std::min(rows, kRows));
    if (rows > kRows) Load(**source, std::max(kRows, rows - kBlock), rows);
  }
  return 0;
}
