// Rows that lie in blocks (server/engine/read/row_block.h) are those that lie in cells of their
// own, wherever a pipeline goes on: a shuffle that chooses among one has its rows in cells.
#include <atomic>
#include <memory>
#include <set>
#include <string>

#include "server/engine/plan/plan_impl.h"
#include "server/engine/read/row_block.h"
#include "server/engine/run/front.h"
#include "server/engine/section/section.h"
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

// The front of a plan, whose sections are done as it asks for them.
class FrontAlone {
 public:
  explicit FrontAlone(const std::string& text)
      : plan_(std::static_pointer_cast<const PlanImpl>(PlanText(Stages(text)).value())),
        files_(plan_->files(), plan_->manifest()),
        clock_(static_cast<int>(plan_->stage_names().size())),
        runner_(store_, files_, clock_),
        front_(*plan_, files_, store_, reads_, sections_, damage_, stop_) {
    front_.set_clock(&clock_);
  }
  ~FrontAlone() {
    front_.Release(&step_);
    while (WorkOnce()) {
    }
  }

  // Of the first step's rows those that lie in blocks; and in how many.
  struct Found {
    size_t rows, of_blocks, blocks;
  };
  Found First() {
    Pulled result = Pulled::kBlocked;
    do {
      result = front_.Assemble(&step_);
    } while (result == Pulled::kBlocked && WorkOnce());
    REQUIRE(result == Pulled::kSome);
    std::set<const uint8_t*> blocks;
    Found found = {step_.records.size(), 0, 0};
    for (const RecordRef& record : step_.records) {
      if (!RowBlock::HasRow(record)) continue;
      ++found.of_blocks;
      blocks.insert(record.data);
    }
    found.blocks = blocks.size();
    return found;
  }

 private:
  bool WorkOnce() {
    SectionTask* const task = sections_.Pop();
    if (task != nullptr) runner_.Run(task);
    return task != nullptr;
  }

  const std::atomic<bool> stop_{false};
  const std::shared_ptr<const PlanImpl> plan_;
  FileTable files_;
  RecordStore store_;
  ReadQueue reads_;
  SectionQueue sections_;
  DamageLog damage_;
  StageClock clock_;
  SectionRunner runner_;
  Front front_;
  Step step_;
};

TEST_CASE("rows lie in blocks where no stage behind keeps them, and in cells elsewhere") {
  const std::string rows = "range { start: 5 stop: 60 } | map { out: 'a = arange(value * 7)' } | ";
  const auto first = [](const std::string& text) { return FrontAlone(text).First(); };
  for (const char* const behind :
       {"batch { batch_size: 64 }", "skip { count: 3 } | batch { batch_size: 64 }",
        "map { out: 'a = a + 1' } | batch { batch_size: 64 }",
        "take { count: 1000 } | repeat { count: 2 } | batch { batch_size: 64 }"}) {
    INFO(behind);
    const FrontAlone::Found found = first(rows + "unbatch {} | " + behind);
    CHECK(found.rows == 64);
    CHECK(found.of_blocks == 64);
    // Of 35, 42 rows and so on.
    CHECK(found.blocks == 2);
  }
  for (const char* const behind :
       {"shuffle { buffer_size: 100 seed: 1 } | batch { batch_size: 64 }",
        "map { out: 'a = a + 1' } | shuffle { buffer_size: 100 seed: 1 } | batch { batch_size: 64 "
        "}"}) {
    INFO(behind);
    CHECK(first(rows + "unbatch {} | " + behind).of_blocks == 0);
  }
  // Nobody knows who has the elements of a nested dataset.
  CHECK(first("range { stop: 9 } | map { out: 'a = value' } | concatenate { (| " + rows +
              "unbatch {} |) } | skip { count: 9 } | batch { batch_size: 64 }")
            .of_blocks == 0);
  // Few rows, and large ones.
  CHECK(first("range { start: 1 stop: 60 } | map { out: 'a = arange(7)' } | unbatch {} | batch { "
              "batch_size: 64 }")
            .of_blocks == 0);
  CHECK(first("range { stop: 7 } | map { out: 'a = reshape(arange(20000) + value, [40, 500])' } | "
              "unbatch {} | batch { batch_size: 64 }")
            .of_blocks == 0);
  // One of more bytes than a block has.
  CHECK(first("range { stop: 7 } | map { out: 'a = arange(300000)' } | unbatch {} | batch { "
              "batch_size: 300000 }")
            .blocks == 3);
}

TEST_CASE("rows draw the same in blocks and in cells") {
  // Of one element several blocks.
  CheckAlike(
      "range { stop: 2 } | map { out: 'a = arange(140000 + value)' } | unbatch {} | ",
      "map { out: 'a = a' out: 'u = random_uniform([1], seed=1)' } | batch { batch_size: 20000 }");
  CheckAlike("range { stop: 40 } | map { out: 'a = arange(100) + value' } | unbatch {} | ",
             "map { out: 'a = a' out: 'u = random_uniform([2], seed=1)' } | batch { batch_size: "
             "32 }");
}

}  // namespace
}  // namespace penstock::test
