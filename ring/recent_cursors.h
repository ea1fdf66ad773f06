// The cursors of the last published steps, so that whoever starts in the ring knows where that is.
//
// Threads:  one at a time.
// Limits:   the steps of a whole ring, kMaxSlots, and the one in front of them.
// Cost:     Add() copies a cursor, some 100 bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ring/layout.h"

namespace penstock::ring {

class RecentCursors {
 public:
  // `cursor` is that of the position in front of `first_step`.
  RecentCursors(uint64_t first_step, std::string_view cursor) { Put(first_step, cursor); }

  // `cursor` is that of the position behind `step`.
  void Add(uint64_t step, std::string_view cursor) { Put(step + 1, cursor); }

  // The cursor of the position in front of `step`; "" where it is not known.
  std::string_view Before(uint64_t step) const {
    const Entry& entry = entries_[step % entries_.size()];
    return entry.step == step ? std::string_view(entry.cursor) : std::string_view();
  }

 private:
  struct Entry {
    uint64_t step = kNoStep;
    std::string cursor;
  };

  void Put(uint64_t step, std::string_view cursor) {
    Entry& entry = entries_[step % entries_.size()];
    entry.step = step;
    entry.cursor.assign(cursor.substr(0, kMaxCursorBytes));
  }

  std::array<Entry, 2 * kMaxSlots> entries_;
};

}  // namespace penstock::ring
