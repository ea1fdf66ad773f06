// Where a row kernel's result of any length goes: one piece of scratch memory.
//
// Threads:  one thread.
// Owns:     nothing; the bytes live as long as the arena's.
// Cost:     what was written before is copied by each further Reserve().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/arena.h"
#include "base/column.h"
#include "server/expr/row_kernel.h"

namespace penstock::expr {

class OnePieceOutput : public RowOutput {
 public:
  explicit OnePieceOutput(Arena& arena) : arena_(arena) {}

  uint8_t* Reserve(size_t bytes) override {
    uint8_t* const all = arena_.Allocate(row_.size + bytes);
    if (row_.size > 0) std::memcpy(all, row_.data, row_.size);
    row_.data = all;
    reserved_ = bytes;
    return all + row_.size;
  }

  void Commit() override {
    row_.size += std::exchange(reserved_, 0);
    is_committed_ = true;
  }

  bool is_committed() const { return is_committed_; }
  RowBytes row() const { return row_; }

 private:
  Arena& arena_;
  RowBytes row_{};
  size_t reserved_ = 0;
  bool is_committed_ = false;
};

}  // namespace penstock::expr
