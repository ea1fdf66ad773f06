// What the codes that stand behind another one add to its entry in a table that finds both at once.
//
// Threads:  const calls from any.
// Cost:     16 KiB.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/inflate/doubled_table.h"
#include "io/inflate/huffman_code.h"

namespace penstock {

class EntriesBehind {
 public:
  static constexpr uint32_t kRoomMax = HuffmanCode::kDirectBits - 1;

  // Calls entry_of(symbol, bits, &entry) for each code of at most kRoomMax bits, whose entry is
  // `none` before.
  template <typename EntryOf>
  void Build(const HuffmanCode& codes, uint64_t none, const EntryOf& entry_of) {
    tables_[1] = none;
    uint32_t room = 0;
    codes.ForEachDirect([&](uint32_t symbol, uint32_t bits, uint32_t code) {
      if (bits > kRoomMax) return;
      for (; room < bits; ++room) Grow(room);
      entry_of(symbol, bits, &tables_[(size_t{1} << bits) + code]);
    });
    for (; room < kRoomMax; ++room) Grow(room);
  }

  // By the next `room` bits, at most kRoomMax: the entry of the code that they begin with, `none`
  // where it has more bits.
  const uint64_t* ByNextBits(uint32_t room) const { return tables_ + (size_t{1} << room); }

 private:
  // What is found in `room` bits is found in one more, whatever that is.
  void Grow(uint32_t room) {
    const size_t size = size_t{1} << room;
    CopyEntries(tables_ + size, size, tables_ + 2 * size);
    CopyEntries(tables_ + size, size, tables_ + 3 * size);
  }

  uint64_t tables_[size_t{2} << kRoomMax];
};

}  // namespace penstock
