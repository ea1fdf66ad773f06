// What a `pack` has packed so far, for statistics.
//
// Threads:  written by the front; read by any.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

struct PackGauge {
  std::atomic<uint64_t> sequences{0};  // that were handed on
  std::atomic<uint64_t> tokens{0};     // in them
  std::atomic<uint64_t> padding{0};    // the same
  std::atomic<uint64_t> documents{0};  // that have come
  std::atomic<uint64_t> pieces{0};     // of them, in the sequences

  void AddDocument() { Raise(documents, 1); }
  void AddSequence(uint64_t more_pieces, uint64_t more_tokens, uint64_t more_padding) {
    Raise(sequences, 1);
    Raise(tokens, more_tokens);
    Raise(padding, more_padding);
    Raise(pieces, more_pieces);
  }

 private:
  // There is one who writes.
  static void Raise(std::atomic<uint64_t>& counter, uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
};

}  // namespace penstock
