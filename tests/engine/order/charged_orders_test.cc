// What order ops keep is charged to the account of the thread that makes them, to the byte where
// that can be known: each op by itself, without a cell or a row beside it that would hide what is
// missing.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_account.h"
#include "server/engine/order/anchored_input.h"
#include "server/engine/order/pack_order.h"
#include "server/engine/read/element_cells.h"
#include "tests/support/catch.h"
#include "tests/support/lone_front.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

std::shared_ptr<MemoryAccount> Account(uint64_t bytes_max = uint64_t{1} << 30) {
  MemoryAccount::Options options;
  options.name = "pipeline p";
  options.bytes_max = bytes_max;
  return MemoryAccount::Create(std::move(options));
}

// So many references without bytes; its position has so many counters.
class References : public MadeUpInput {
 public:
  explicit References(uint64_t count, uint64_t counters = 1) : count_(count), counters_(counters) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (; *pulled < count && next_ < count_; ++*pulled) {
      RecordRef reference;
      reference.offset = next_++;
      out.push_back(reference);
    }
    return *pulled == count ? Pulled::kSome : Pulled::kEnd;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    next_ += count - *skipped;
    *skipped = count;
    return Pulled::kSome;
  }
  void Save(Position& position) const override {
    for (uint64_t i = 0; i < counters_; ++i) position.Add(next_);
  }
  std::optional<uint64_t> Count() override { return count_; }

 private:
  const uint64_t count_;
  const uint64_t counters_;
};

// The last op of a spec, over another input. It must go before its front.
struct LastOp {
  LastOp(const std::string& stages, LoneFront& front, std::unique_ptr<OrderOp> input) {
    auto made = PlanText(Stages(stages));
    INFO(made.status().ToString());
    REQUIRE(made.ok());
    plan = *std::move(made);
    op = MakeLastOp(*plan, front.context, std::move(input));
  }
  OrderOp* operator->() const { return op.get(); }

  std::shared_ptr<const Plan> plan;
  std::unique_ptr<OrderOp> op;
};

constexpr uint64_t kElements = 1 << 16;  // a power of two: a list of so many has no more room
constexpr uint64_t kReferenceBytes = kElements * sizeof(RecordRef);

TEST_CASE("fault 35: an input that waits is charged with its positions, however long they are") {
  constexpr uint64_t kCounters = 1000;
  constexpr uint64_t kPositionBytes =
      kElements / AnchoredInput::kChunkElements * kCounters * sizeof(uint64_t);
  LoneFront front;
  const auto account = Account();
  {
    const MemoryAccount::Scope charged(account.get());
    AnchoredInput input(front.context, std::make_unique<References>(kElements, kCounters));
    REQUIRE(input.Fill(kElements) == Pulled::kSome);
    CHECK(account->taken() >= kReferenceBytes + kPositionBytes);
    // They go with the elements in front of which they stand.
    uint64_t half = kElements / 2;
    REQUIRE(input.Drop(&half) == Pulled::kSome);
    CHECK(account->taken() >= kReferenceBytes + kPositionBytes / 2);
    CHECK(account->taken() < kReferenceBytes + kPositionBytes);
    uint64_t rest = kElements / 2;
    REQUIRE(input.Drop(&rest) == Pulled::kSome);
    CHECK(account->taken() == kReferenceBytes);
    CHECK(input.Fill(1) == Pulled::kEnd);
    CHECK(account->taken() == kReferenceBytes);
    input.Restart(1);
    REQUIRE(input.Fill(100) == Pulled::kSome);
    CHECK(account->taken() >= kReferenceBytes + 2 * kCounters * sizeof(uint64_t));
    input.Restart(2);
    CHECK(account->taken() == kReferenceBytes);
  }
  CHECK(account->taken() == 0);
}

TEST_CASE("fault 35: an open window is charged beside the elements that wait") {
  LoneFront front;
  const auto account = Account();
  {
    const MemoryAccount::Scope charged(account.get());
    const LastOp op(
        "range { stop: 1 } | window { size: 65536 shift: 1 (| take { count: 65536 } |) }", front,
        std::make_unique<References>(2 * kElements));
    RecordList out;
    uint64_t pulled = 0;
    REQUIRE(op->Pull(1, out, &pulled) == Pulled::kSome);
    CHECK(account->taken() >= 2 * kReferenceBytes);
  }
  CHECK(account->taken() == 0);
}

// Documents without tokens, which no packer keeps.
class EmptyDocuments final : public PackInput {
 public:
  Pulled Pull(uint64_t count, RecordList& documents, std::vector<uint32_t>& tokens,
              uint64_t* pulled) override {
    const Pulled result = references_.Pull(count, documents, pulled);
    tokens.resize(documents.size());
    return result;
  }
  uint64_t PathOf(const RecordRef&) const override { return 1; }
  RecordRef OriginOf(const RecordRef& document) const override { return document; }
  void Restart(uint64_t epoch) override { references_.Restart(epoch); }
  void Save(Position& position) const override { references_.Save(position); }
  absl::Status Restore(Position& position) override { return references_.Restore(position); }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  References references_{kElements};
};

TEST_CASE("fault 35: pack: the documents of a window are charged, and their lengths") {
  LoneFront front;
  const auto account = Account();
  {
    const MemoryAccount::Scope charged(account.get());
    PackWindows windows;
    windows.rules.sequence_length = 8;
    windows.window = kElements;
    const auto op = PackOrder(front.context, windows, std::make_unique<EmptyDocuments>());
    RecordList out;
    uint64_t pulled = 0;
    REQUIRE(op->Pull(1, out, &pulled) == Pulled::kEnd);
    CHECK(account->taken() == kReferenceBytes + kElements * sizeof(uint32_t));
  }
  CHECK(account->taken() == 0);
}

// Elements in cells of their own, of one int64 each.
class Cells final : public MadeUpInput {
 public:
  explicit Cells(RecordStore& store) : cells_(store) {}
  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (; *pulled < count; ++*pulled) {
      const auto value = static_cast<int64_t>(next_++);
      // Behind a value there must be room for loads of whole vectors.
      int64_t values[16] = {value};
      Column column;
      column.data = reinterpret_cast<uint8_t*>(values);
      column.row_bytes = sizeof(value);
      RecordRef element;
      REQUIRE(layout_.Pack({&column, 1}, 0, cells_, &element).ok());
      out.push_back(element);
    }
    return Pulled::kSome;
  }
  std::optional<uint64_t> Count() override { return std::nullopt; }

 private:
  const ElementCells layout_{{{"value", {DType::kInt64, {}}}}};
  CellCache cells_;
};

TEST_CASE("fault 35: a state is charged beside what its program takes") {
  constexpr int kDoublings = 24;
  constexpr uint64_t kStateBytes = uint64_t{1} << kDoublings;
  const auto account = Account();
  {
    const MemoryAccount::Scope charged(account.get());
    LoneFront front;
    const LastOp op(
        "range { stop: 1 } | scan { initial_state { name: 's' string_value: 'x' } state: 's = s + "
        "s' out: 'n = string_length(s)' }",
        front, std::make_unique<Cells>(front.store));
    RecordList out;
    uint64_t pulled = 0;
    REQUIRE(op->Pull(kDoublings, out, &pulled) == Pulled::kSome);
    // What `n` tells is the state in front of the last element.
    REQUIRE(ElementCells::First(out.back()) == int64_t{kStateBytes / 2});
    // The state, the one before it that the program reads, and what it makes of that.
    CHECK(account->taken() >= kStateBytes + kStateBytes / 2 + kStateBytes);
    front.store.Release(out);
  }
  CHECK(account->taken() == 0);
}

TEST_CASE("fault 35: a cache is charged with its references, and with its runs") {
  constexpr uint64_t kRuns = 1000;
  LoneFront front;
  const auto account = Account();
  {
    const MemoryAccount::Scope charged(account.get());
    const LastOp op("range { stop: 1 } | cache {}", front,
                    std::make_unique<References>(kElements + 2 * kRuns));
    RecordList out;
    uint64_t pulled = 0;
    REQUIRE(op->Pull(kElements, out, &pulled) == Pulled::kSome);
    const uint64_t of_one_run = account->taken();
    CHECK(of_one_run >= kReferenceBytes);
    // Each element behind one that is left out begins a run: a reference, and a place in the map
    // with its list, which malloc makes 80 bytes of.
    for (uint64_t i = 0; i < kRuns; ++i) {
      uint64_t moved = 0;
      REQUIRE(op->Skip(1, &moved) == Pulled::kSome);
      moved = 0;
      REQUIRE(op->Pull(1, out, &moved) == Pulled::kSome);
    }
    CHECK(account->taken() >= of_one_run + kRuns * (80 + sizeof(RecordRef)));
  }
  CHECK(account->taken() == 0);
}

TEST_CASE("fault 35: a cache is full where its list would double beyond what is to be kept") {
  LoneFront front;
  // Half of it may be kept.
  const auto account = Account(3 * kReferenceBytes);
  {
    const MemoryAccount::Scope charged(account.get());
    const LastOp op("range { stop: 1 } | cache {}", front,
                    std::make_unique<References>(kElements + 1000));
    RecordList out;
    uint64_t pulled = 0;
    REQUIRE(op->Pull(kElements + 1000, out, &pulled) == Pulled::kSome);
    CHECK(pulled == kElements + 1000);
    CHECK(account->taken() >= kReferenceBytes);
    CHECK(account->taken() <= 3 * kReferenceBytes / 2);
  }
  CHECK(account->taken() == 0);
}

}  // namespace
}  // namespace penstock::test
