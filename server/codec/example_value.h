// What one feature of one tf.train.Example was found to be.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

struct ExampleValue {
  bool present = false;
  uint32_t count = 0;              // of values that were gathered
  const uint8_t* bytes = nullptr;  // of a byte list: its one value, inside the record; or what was
  size_t size = 0;                 // gathered, as a row of base/column.h
};

}  // namespace penstock
