// What one feature of one tf.train.Example was found to be.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

struct ExampleValue {
  bool present = false;
  const uint8_t* bytes = nullptr;  // of a byte list: its one value, inside the record
  size_t size = 0;
};

}  // namespace penstock
