// How far a section runs ahead: blocks, references, bytes. The test is the worker.
#include "server/engine/section/section_op.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/lone_front.h"

namespace penstock::testing {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// References without bytes, numbered by their offsets; without end.
class Numbers final : public test::MadeUpInput {
 public:
  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (; *pulled < count; ++*pulled) {
      RecordRef reference;
      reference.offset = next_++;
      reference.length = length;
      reference.data = length > 0 ? &byte_ : nullptr;
      out.push_back(reference);
    }
    return Pulled::kSome;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    next_ += count - *skipped;
    *skipped = count;
    return Pulled::kSome;
  }
  std::optional<uint64_t> Count() override { return kEndless; }

  uint32_t length = 0;  // of a record in a cell; 0: it has none

 private:
  const uint8_t byte_ = 0;
};

// Makes one element of each; the test does its work.
class OneOfEach final : public SplitOp {
 public:
  const Signature& output() const override { return output_; }
  std::optional<uint64_t> elements_of_each() const override { return 1; }
  RowStatus Run(int, absl::Span<const Column>, Split*, absl::Span<Column>, Arena&) const override {
    return {};
  }

 private:
  const Signature output_;
};

// A section over Numbers whose blocks are done when the test says so; an element is the reference
// that it is made of.
struct Fixture : test::LoneFront {
  explicit Fixture(uint32_t block_rows, uint32_t record_bytes = 0) {
    section->block_rows = block_rows;
    section->split = std::make_unique<OneOfEach>();
    auto input = std::make_unique<Numbers>();
    input->length = record_bytes;
    op = std::make_unique<SectionOp>(context, section, std::move(input));
  }

  // Does the first `count` blocks that were asked for, of elements of that many bytes together.
  void Do(size_t count, uint64_t bytes) {
    for (; count > 0; --count) {
      SectionTask* const task = sections.Pop();
      REQUIRE(task != nullptr);
      for (const RecordRef& record : task->records) {
        RecordRef element;
        element.offset = record.offset;
        task->elements.push_back(element);
      }
      task->records.clear();
      task->element_bytes = bytes;
      task->done.store(true, std::memory_order_release);
    }
  }

  // The numbers of the elements that there are, of up to `count`.
  std::vector<uint64_t> Pull(uint64_t count) {
    RecordList out;
    uint64_t pulled = 0;
    result = op->Pull(count, out, &pulled);
    std::vector<uint64_t> numbers;
    for (const RecordRef& element : out) numbers.push_back(element.offset);
    return numbers;
  }

  const std::shared_ptr<Section> section = std::make_shared<Section>();
  std::unique_ptr<SectionOp> op;
  Pulled result = Pulled::kSome;
};

TEST_CASE("a section has 32 small blocks ahead once it knows that they are small") {
  Fixture test(4);
  test.ahead.set_workers(2);
  CHECK(test.Pull(1).empty());
  CHECK(test.result == Pulled::kBlocked);
  CHECK(test.sections.size() == 2);
  test.Do(1, 1000);
  CHECK(test.Pull(1) == std::vector<uint64_t>{0});
  CHECK(test.sections.size() == SectionOp::kBlocksAhead - 1);
}

TEST_CASE("a section has no further block ahead behind 2^20 references") {
  Fixture test(1 << 18);
  test.ahead.set_workers(8);
  test.Pull(1);
  CHECK(test.sections.size() == 4);
  Fixture larger((1 << 20) + 1);
  larger.ahead.set_workers(8);
  larger.Pull(1);
  CHECK(larger.sections.size() == 1);
}

TEST_CASE("a section has as many bytes ahead as it may, or a block for each worker") {
  Fixture test(2);
  test.ahead.set_workers(3);
  test.Pull(1);
  REQUIRE(test.sections.size() == 3);
  test.Do(1, 40 * kMiB);
  // Those under way count as much as the one that is done: six of them are 240 MiB.
  test.Pull(1);
  CHECK(test.sections.size() == 5);
  SECTION("blocks that turn out to be small") {
    // The largest one counts for a while.
    test.Do(5, 1000);
    test.Pull(1);
    const size_t soon = test.sections.size();
    CHECK(soon > 5);
    for (int block = 0; block < 64; ++block) {
      while (test.Pull(2).size() == 2) continue;
      test.Do(1, 1000);
    }
    CHECK(soon < SectionOp::kBlocksAhead - 1);
    CHECK(test.sections.size() == SectionOp::kBlocksAhead - 1);
  }
  SECTION("blocks as large as all that may be ahead") {
    test.Do(5, SectionsAhead::kBytes);
    for (int block = 0; block < 12; ++block) {
      const std::vector<uint64_t> pulled = test.Pull(2);
      if (pulled.size() < 2) test.Do(1, SectionsAhead::kBytes);
    }
    test.Pull(1);
    CHECK(test.sections.size() <= 3);
  }
}

TEST_CASE("records that wait for a section's workers count as what is ahead") {
  // 64 KiB × 1,024 records: four blocks.
  Fixture test(1024, 64 << 10);
  test.ahead.set_workers(1);
  test.Pull(1);
  CHECK(test.sections.size() == 1);
  // Nothing comes of them.
  SectionTask* const task = test.sections.Pop();
  task->records.clear();
  task->done.store(true, std::memory_order_release);
  test.Pull(1);
  CHECK(test.sections.size() == 4);
  // The rest of them were never taken out of a cell.
  while (SectionTask* rest = test.sections.Pop()) {
    rest->records.clear();
    rest->done.store(true, std::memory_order_release);
  }
}

TEST_CASE("sections of one front share what may be ahead") {
  Fixture test(2);
  test.ahead.set_workers(4);
  auto second =
      std::make_unique<SectionOp>(test.context, test.section, std::make_unique<Numbers>());
  test.Pull(1);
  REQUIRE(test.sections.size() == 2);
  test.Do(2, 40 * kMiB);
  test.Pull(1);
  // Three of 40 MiB are in 128, one of which was done before and one of which has been taken.
  CHECK(test.sections.size() == 1);
  second.reset();
  test.Pull(1);
  CHECK(test.sections.size() == 4);
}

TEST_CASE("what a section hands on does not depend on how much is ahead") {
  const auto run = [](uint64_t bytes, int workers) {
    Fixture test(3);
    test.ahead.set_workers(workers);
    std::vector<uint64_t> all;
    while (all.size() < 300) {
      const std::vector<uint64_t> pulled = test.Pull(7);
      all.insert(all.end(), pulled.begin(), pulled.end());
      if (!test.sections.empty()) test.Do(1, bytes);
    }
    all.resize(300);
    return all;
  };
  std::vector<uint64_t> expected(300);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = i;
  CHECK(run(1, 1) == expected);
  CHECK(run(200 * kMiB, 1) == expected);
  CHECK(run(90 * kMiB, 4) == expected);
  CHECK(run(2 * SectionsAhead::kBytes, 2) == expected);
}

TEST_CASE("a block that is large goes in parts, and its position is the whole block's") {
  constexpr uint64_t kRows = 8;
  Fixture test(kRows);
  test.ahead.set_workers(1);
  test.Pull(1);
  test.Do(1, kRows * SectionOp::kPartBytes / 2);
  REQUIRE(test.Pull(kRows).size() == kRows);
  CHECK(test.sections.size() > 1);
  test.Do(1, SectionOp::kPartBytes);
  CHECK(test.Pull(kRows) == std::vector<uint64_t>{8, 9});
  Position position;
  test.op->Save(position);

  Fixture resumed(kRows);
  resumed.ahead.set_workers(1);
  REQUIRE(resumed.op->Restore(position).ok());
  resumed.Pull(1);
  resumed.Do(1, 1000);
  CHECK(resumed.Pull(4) == std::vector<uint64_t>{10, 11, 12, 13});
}

TEST_CASE("behind blocks that the input has left out, a section's position is the input's") {
  constexpr uint64_t kRows = 4;
  Fixture test(kRows);
  test.ahead.set_workers(1);
  test.Pull(1);
  // So large that nothing is asked for behind it, and looked at to its end.
  test.Do(1, SectionsAhead::kBytes);
  REQUIRE(test.Pull(kRows).size() == kRows);
  REQUIRE(test.sections.empty());
  uint64_t skipped = 0;
  REQUIRE(test.op->Skip(2 * kRows, &skipped) == Pulled::kSome);
  REQUIRE(skipped == 2 * kRows);
  REQUIRE(test.sections.empty());
  Position position;
  test.op->Save(position);

  Fixture resumed(kRows);
  resumed.ahead.set_workers(1);
  REQUIRE(resumed.op->Restore(position).ok());
  CHECK(position.complete());
  for (Fixture* each : {&test, &resumed}) {
    // One of them knows of large blocks, which go in parts.
    std::vector<uint64_t> numbers;
    while (numbers.size() < kRows) {
      const std::vector<uint64_t> pulled = each->Pull(kRows - numbers.size());
      numbers.insert(numbers.end(), pulled.begin(), pulled.end());
      if (!each->sections.empty()) each->Do(1, 1000);
    }
    CHECK(numbers == std::vector<uint64_t>{12, 13, 14, 15});
  }
}

}  // namespace
}  // namespace penstock::testing
