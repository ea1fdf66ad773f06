// A keyed bijection of [0, size) that stays near: blocks of consecutive numbers are put in a random
// order, and then the numbers of each group of blocks that stand side by side in it. What is asked
// for in order lies in the blocks of one group at a time, so that a disk reads whole blocks.
//
// Threads:  one at a time: the group that was asked for last is kept.
// Limits:   size below 2^62; block_size and group_blocks at least 1, their product below 2^62.
// Cost:     two permutations (base/permutation.h) a number, one more for the first of a group.
#pragma once

#include <cstdint>
#include <optional>

#include "base/permutation.h"

namespace penstock {

class BlockPermutation {
 public:
  // The last block is shorter where block_size does not divide size; so is the group that holds it,
  // and the last one.
  BlockPermutation(uint64_t size, uint64_t block_size, uint64_t group_blocks, uint64_t key,
                   uint64_t epoch);

  // REQUIRES: place < size.
  uint64_t operator()(uint64_t place);

  uint64_t num_groups() const { return (num_blocks_ + group_blocks_ - 1) / group_blocks_; }
  uint64_t GroupOf(uint64_t place) const;
  // The blocks of a group: numbers FirstBlock() … of the permuted blocks, each beginning at
  // BlockBegin().
  uint64_t FirstBlock(uint64_t group) const { return group * group_blocks_; }
  uint64_t NumBlocks(uint64_t group) const;
  uint64_t BlockBegin(uint64_t nth_block) const { return blocks_(nth_block) * block_size_; }
  uint64_t BlockEnd(uint64_t nth_block) const;

 private:
  struct Group {
    uint64_t number;
    uint64_t begin;  // the first place of it
    Permutation inside;
  };

  uint64_t GroupBegin(uint64_t group) const;
  uint64_t GroupSize(uint64_t group) const;

  uint64_t size_;
  uint64_t block_size_;
  uint64_t group_blocks_;
  uint64_t key_;
  uint64_t epoch_;
  uint64_t num_blocks_;
  uint64_t missing_;  // what the short block has less than the others
  Permutation blocks_;
  uint64_t short_block_;  // which of the permuted blocks that is
  std::optional<Group> group_;
};

}  // namespace penstock
