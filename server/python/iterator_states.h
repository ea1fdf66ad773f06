// Where a Python iterable's iterator stood: states of recent elements, as a worker process has told
// them, for cursors and for processes that begin anew.
//
// Threads:  any.
// Limits:   kMaxStates, the latest ones; kMaxStateBytes each. A longer one is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

namespace penstock::python {

class IteratorStates {
 public:
  // What a cursor has room for.
  static constexpr size_t kMaxStateBytes = 768;
  static constexpr size_t kMaxStates = 1024;

  struct State {
    uint64_t number = 0;  // elements in front
    std::string bytes;    // "" at the beginning, where none is needed
  };

  void Add(uint32_t pass, State state);
  // The latest state of that pass with no more than `number` elements in front; the beginning where
  // there is none.
  State Find(uint32_t pass, uint64_t number) const;

 private:
  struct Kept {
    uint32_t pass = 0;
    State state;
  };
  mutable std::mutex mutex_;
  std::deque<Kept> states_;  // under mutex_, the latest behind
};

}  // namespace penstock::python
