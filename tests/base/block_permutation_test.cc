#include "base/block_permutation.h"

#include <algorithm>
#include <set>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("a permutation of blocks gives every number once, group by group") {
  for (const uint64_t size : {1, 2, 9, 10, 11, 99, 100, 101, 997}) {
    for (const uint64_t block_size : {1, 3, 10, 1000}) {
      for (const uint64_t group_blocks : {1, 2, 7, 500}) {
        for (uint64_t epoch = 0; epoch < 4; ++epoch) {
          CAPTURE(size, block_size, group_blocks, epoch);
          BlockPermutation order(size, block_size, group_blocks, 5, epoch);
          std::vector<bool> seen(size);
          std::set<uint64_t> blocks_before;
          std::set<uint64_t> blocks;
          uint64_t group = 0;
          for (uint64_t place = 0; place < size; ++place) {
            if (order.GroupOf(place) != group) {
              REQUIRE(order.GroupOf(place) == ++group);
              blocks_before.merge(blocks);
              blocks.clear();
            }
            const uint64_t number = order(place);
            REQUIRE(number < size);
            REQUIRE_FALSE(seen[number]);
            seen[number] = true;
            blocks.insert(number / block_size);
            REQUIRE(blocks.size() <= group_blocks);
            REQUIRE(blocks_before.count(number / block_size) == 0);
          }
          REQUIRE(group + 1 == order.num_groups());
        }
      }
    }
  }
}

TEST_CASE("the blocks of a group are those that its numbers lie in") {
  BlockPermutation order(1003, 10, 7, 9, 1);
  for (uint64_t place = 0; place < 1003; ++place) {
    const uint64_t group = order.GroupOf(place);
    const uint64_t number = order(place);
    bool found = false;
    const uint64_t first = order.FirstBlock(group);
    for (uint64_t block = first; block < first + order.NumBlocks(group); ++block)
      found = found || (order.BlockBegin(block) <= number && number < order.BlockEnd(block));
    CAPTURE(place, group, number);
    REQUIRE(found);
  }
}

TEST_CASE("a permutation of blocks can be asked for any place, and differs by key and epoch") {
  BlockPermutation forwards(500, 8, 4, 5, 0), any(500, 8, 4, 5, 0);
  std::vector<uint64_t> order;
  for (uint64_t place = 0; place < 500; ++place) order.push_back(forwards(place));
  for (uint64_t place = 500; place-- > 0;) REQUIRE(any(place) == order[place]);
  BlockPermutation other_epoch(500, 8, 4, 5, 1), other_key(500, 8, 4, 6, 0);
  uint64_t same_epoch = 0, same_key = 0;
  for (uint64_t place = 0; place < 500; ++place) {
    same_epoch += other_epoch(place) == order[place];
    same_key += other_key(place) == order[place];
  }
  CHECK(same_epoch < 20);
  CHECK(same_key < 20);
}

// Neighbours in the order are mostly of different blocks: the groups are mixed inside as well.
TEST_CASE("the numbers of a group are mixed") {
  BlockPermutation order(10'000, 100, 20, 3, 0);
  uint64_t same_block = 0;
  for (uint64_t place = 1; place < 10'000; ++place)
    same_block += order(place) / 100 == order(place - 1) / 100;
  CHECK(same_block > 300);  // one in twenty
  CHECK(same_block < 700);
}

}  // namespace
}  // namespace penstock
