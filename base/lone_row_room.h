// Where a row that is alone in its batch may lie from the beginning, so that it is copied once.
//
// Threads:  one at a time.
#pragma once

#include <cstdint>

namespace penstock {

class LoneRowRoom {
 public:
  virtual ~LoneRowRoom() = default;

  // Memory for so many bytes of a feature whose size only the data tells, aligned to 64 bytes;
  // null: there is none, and any other memory does.
  virtual uint8_t* Take(uint64_t bytes) = 0;
};

}  // namespace penstock
