// A second map of a ring that this process may write: a page that it writes becomes its own copy,
// and everything else is the daemon's memory, as in the first map. For frameworks that do not know
// of read-only memory, such as torch.
//
// A page that was written shows its old bytes until it is dropped: Drop() a slot before its lease
// is given back.
//
// Threads:  Map() one at a time; the rest from any, each slot by whoever holds it.
// Owns:     the map.
// Cost:     Map() once a ring, a system call and no memory. A slot that is read through it takes
//           the page faults of a new map each time, few where the system has huge pages; a page
//           that is written, its copy.
#pragma once

#include <cstdint>

namespace penstock_client {

class PrivateView {
 public:
  PrivateView() = default;
  ~PrivateView();
  PrivateView(const PrivateView&) = delete;
  PrivateView& operator=(const PrivateView&) = delete;

  bool is_mapped() const { return memory_ != nullptr; }
  // Maps the file of which `first` is a map of `bytes` bytes. False, with errno, when that cannot
  // be.
  bool Map(int fd, const uint8_t* first, uint64_t bytes);
  // Where what lies at `data` in the first map can be written; null when it does not lie there.
  // REQUIRES: is_mapped().
  uint8_t* Find(const void* data) const;
  // What was written to a part of the first map is gone. REQUIRES: is_mapped(); whole pages. Ends
  // the process where that cannot be: old bytes in the next batch would be worse.
  void Drop(const uint8_t* data, uint64_t bytes) const;

 private:
  const uint8_t* first_ = nullptr;
  uint8_t* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace penstock_client
