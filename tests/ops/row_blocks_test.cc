// Rows that lie in blocks (server/engine/read/row_block.h) are those that lie in cells of their
// own, wherever a pipeline goes on: a shuffle that chooses among one has its rows in cells.
#include <string>

#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

constexpr char kCells[] = "shuffle { buffer_size: 1 seed: 1 } | ";

void CheckAlike(const std::string& rows, const std::string& behind) {
  INFO(rows << behind);
  const RunResult blocks = RunText(Stages(rows + behind));
  const RunResult cells = RunText(Stages(rows + kCells + behind));
  REQUIRE(blocks.status.ok());
  REQUIRE(cells.status.ok());
  CHECK(blocks.finished);
  REQUIRE(blocks.batches.size() > 2);
  REQUIRE(blocks.batches.size() == cells.batches.size());
  for (size_t i = 0; i < blocks.batches.size(); ++i)
    REQUIRE(blocks.batches[i].parts == cells.batches[i].parts);
}

TEST_CASE("rows in blocks are those in cells") {
  const std::string numbers = "range { start: 5 stop: 60 } | ";
  const std::string lists =
      numbers +
      "map { out: 'a = arange(value * 7)' "
      "out: 'b = stack(arange(value * 7), arange(value * 7)) * 0.5' "
      "out: 'c = as_string(arange(value * 7) * 1001)' "
      "out: 'd = as_string(stack(arange(value * 7), arange(value * 7) * 99))' "
      "out: 'e = arange(value * 7) % 3 == 0' } | ";
  // Of cells, what lies in them stays there.
  const std::string from_cells = lists + "filter { predicate: 'a[0] == 0' } | ";
  const std::string few = numbers + "map { out: 'a = arange(value % 9)' } | ";
  const std::string large =
      "range { stop: 7 } | map { out: 'a = reshape(arange(20000) + value, [40, 500])' "
      "out: 'b = as_string(arange(40))' } | ";
  for (const std::string& elements : {lists, from_cells, few, large}) {
    CheckAlike(elements + "unbatch { block_size: 1 } | ", "batch { batch_size: 13 }");
    CheckAlike(elements + "unbatch {} | ", "skip { count: 3 } | batch { batch_size: 13 }");
  }
  for (const std::string& elements : {lists, from_cells}) {
    CheckAlike(elements + "unbatch { block_size: 2 } | ",
               "map { out: 'a = a + 1' out: 'c = c' } | batch { batch_size: 64 }");
    CheckAlike(elements + "unbatch {} | ",
               "take { count: 1000 } | repeat { count: 2 } | "
               "batch { batch_size: 50 drop_remainder: true }");
    CheckAlike(elements + "unbatch {} | ", "batch { batch_size: 7 } | take { count: 300 }");
    CheckAlike(elements + "unbatch {} | ",
               "shard { num_shards: 3 index: 1 } | enumerate {} | batch { batch_size: 9 }");
    CheckAlike(elements + "unbatch {} | ",
               "zip { (| range { stop: 900 } |) } | batch { batch_size: 9 }");
  }
}

TEST_CASE("rows draw the same in blocks and in cells") {
  CheckAlike("range { stop: 40 } | map { out: 'a = arange(100) + value' } | unbatch {} | ",
             "map { out: 'a = a' out: 'u = random_uniform([2], seed=1)' } | batch { batch_size: "
             "32 }");
}

}  // namespace
}  // namespace penstock::test
