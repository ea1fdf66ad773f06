#include "server/text/unicode/classes.h"

#include <algorithm>
#include <map>
#include <string>

namespace penstock::text {
namespace {

constexpr CodePointTable::Run kClassRuns[] = {
#include "server/text/unicode/classes.inc"
};
constexpr CodePointTable::Run kFlagRuns[] = {
#include "server/text/unicode/flags.inc"
};

constexpr std::array<uint8_t, 256> ByteClasses() {
  std::array<uint8_t, 256> classes{};
  size_t run = 0;
  for (uint32_t byte = 0; byte < 0x80; ++byte) {
    while (kClassRuns[run + 1].from <= byte) ++run;
    classes[byte] = kClassRuns[run].value;
  }
  for (uint32_t byte = 0x80; byte < 0x100; ++byte) classes[byte] = kNotAscii;
  return classes;
}

}  // namespace

constexpr std::array<uint8_t, 256> kByteClassValues = ByteClasses();
const std::array<uint8_t, 256> kByteClass = kByteClassValues;

void CodePointTable::Build(const Run* runs, size_t count) {
  std::vector<uint8_t> values(0x110000);
  for (size_t run = 0; run < count; ++run) {
    const size_t end = run + 1 < count ? runs[run + 1].from : values.size();
    std::fill(values.begin() + runs[run].from, values.begin() + static_cast<ptrdiff_t>(end),
              runs[run].value);
  }
  *this = CodePointTable(values);
}

CodePointTable::CodePointTable(const std::vector<uint8_t>& values) {
  std::map<std::string, uint16_t> known;
  for (size_t block = 0; block < blocks_.size(); ++block) {
    const auto* const begin = values.data() + (block << 8);
    const auto [found, is_new] =
        known.emplace(std::string(begin, begin + 256), static_cast<uint16_t>(known.size()));
    if (is_new) values_.insert(values_.end(), begin, begin + 256);
    blocks_[block] = found->second;
  }
}

const CodePointTable& Classes() {
  static const auto& table = *new CodePointTable(kClassRuns);
  return table;
}

const CodePointTable& Flags() {
  static const auto& table = *new CodePointTable(kFlagRuns);
  return table;
}

}  // namespace penstock::text
