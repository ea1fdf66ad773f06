// Recognises what is computed from unpacked bits and constants alone, whatever the arithmetic: each
// element is then one of two constants, chosen by one bit.
//
// Threads:  constant after construction.
// Owns:     the kernel's tables.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/arena.h"
#include "server/expr/graph.h"
#include "server/kernels/bit_select.h"

namespace penstock::expr {

// The tables of one fused kernel, with everything they point to.
class BitPattern {
 public:
  // REQUIRES: node.bits != nullptr. Null when the node is no choice by single bits (two different
  // bits meet in an element).
  static absl::StatusOr<std::unique_ptr<BitPattern>> Make(Graph& graph, const Node& node);

  const kernels::BitSelectTable& table() const { return table_; }
  void Run(const Column& in, size_t rows, uint8_t* out) const { kernel_(table_, in, rows, out); }
  // Which bit chooses each element.
  const std::vector<int32_t>& index() const { return index_; }

 private:
  // The windows of one period of chunks, and how many of them the widest chunk has.
  struct Layout {
    size_t chunk = 0;
    size_t period_chunks = 0;
    size_t period_bytes = 0;
    size_t windows = 1;
    std::vector<std::vector<int32_t>> starts;
  };
  Layout LayoutFor(size_t chunk, size_t element_bytes) const;
  void BuildTables(size_t element_bytes);
  // Whether the bits of the first `count` elements lie in a word of `word_bytes`, and where that
  // begins.
  bool LieInWord(size_t count, size_t word_bytes, size_t* first) const;
  // BitSelectTable's words, if the elements are so. REQUIRES: all constants are there.
  void FindWords(size_t element_bytes);
  bool Repeats(size_t period, size_t element_bytes) const;
  bool ConstantsRepeat(size_t period, size_t element_bytes) const;
  size_t ConstantPeriod(size_t element_bytes) const;

  // Where a kernel loads whole vectors: a load across two cache lines costs twice.
  const uint8_t* Aligned(const std::vector<uint8_t>& bytes);

  kernels::BitSelectTable table_;
  kernels::BitSelectKernel kernel_ = nullptr;
  Arena tables_;
  std::vector<int32_t> index_;
  std::vector<uint8_t> one_;
  std::vector<uint8_t> zero_;
  std::vector<int32_t> offset_;
};

}  // namespace penstock::expr
