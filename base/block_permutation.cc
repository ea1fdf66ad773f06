#include "base/block_permutation.h"

#include <algorithm>

namespace penstock {
namespace {

uint64_t NumBlocksOf(uint64_t size, uint64_t block_size) {
  return size / block_size + (size % block_size != 0 ? 1 : 0);
}

}  // namespace

BlockPermutation::BlockPermutation(uint64_t size, uint64_t block_size, uint64_t group_blocks,
                                   uint64_t key, uint64_t epoch)
    : size_(size),
      block_size_(block_size),
      group_blocks_(group_blocks),
      key_(key),
      epoch_(epoch),
      num_blocks_(NumBlocksOf(size, block_size)),
      missing_(num_blocks_ * block_size - size),
      blocks_(num_blocks_, key, epoch),
      short_block_(num_blocks_ == 0 ? 0 : blocks_.Inverse(num_blocks_ - 1)) {}

uint64_t BlockPermutation::GroupOf(uint64_t place) const {
  const uint64_t whole = block_size_ * group_blocks_;
  const uint64_t short_group = short_block_ / group_blocks_;
  return place < (short_group + 1) * whole - missing_ ? place / whole : (place + missing_) / whole;
}

uint64_t BlockPermutation::GroupBegin(uint64_t group) const {
  const uint64_t short_group = short_block_ / group_blocks_;
  return group * group_blocks_ * block_size_ - (group > short_group ? missing_ : 0);
}

uint64_t BlockPermutation::NumBlocks(uint64_t group) const {
  return std::min(group_blocks_, num_blocks_ - FirstBlock(group));
}

uint64_t BlockPermutation::GroupSize(uint64_t group) const {
  const uint64_t short_group = short_block_ / group_blocks_;
  return NumBlocks(group) * block_size_ - (group == short_group ? missing_ : 0);
}

uint64_t BlockPermutation::BlockEnd(uint64_t nth_block) const {
  return std::min(size_, BlockBegin(nth_block) + block_size_);
}

uint64_t BlockPermutation::operator()(uint64_t place) {
  const uint64_t group = GroupOf(place);
  if (!group_ || group_->number != group) {
    // Another order in each group: its number is part of the key.
    const uint64_t key = key_ + (group + 1) * 0x9e3779b97f4a7c15;
    group_.emplace(Group{group, GroupBegin(group), Permutation(GroupSize(group), key, epoch_)});
  }
  uint64_t inside = group_->inside(place - group_->begin);
  // Behind the short block everything lies so much further on as it is short of.
  const uint64_t first = FirstBlock(group);
  if (short_block_ >= first && inside >= (short_block_ - first + 1) * block_size_ - missing_)
    inside += missing_;
  return BlockBegin(first + inside / block_size_) + inside % block_size_;
}

}  // namespace penstock
