// Bytes that grow, aligned as a tensor's parts in a slot are, and with as many spare bytes behind
// them.
//
// Threads:  one at a time.
// Owns:     its memory, which moves when it grows.
// Limits:   no exception: a call that finds no memory returns false.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace penstock_client {

class AlignedBytes {
 public:
  // False, and nothing has changed, where there is no memory.
  bool Reserve(uint64_t bytes);
  bool Append(const void* from, uint64_t bytes);
  void Clear() { bytes_ = 0; }
  uint64_t bytes() const { return bytes_; }
  uint8_t* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t, Free> memory_;
  uint64_t bytes_ = 0;
  uint64_t capacity_ = 0;
};

}  // namespace penstock_client
