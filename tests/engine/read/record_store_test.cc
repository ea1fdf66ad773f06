// Cells for records: which size holds which, who owns them, and that none is lost.
#include "server/engine/read/record_store.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <random>
#include <vector>

#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

RecordRef InCell(const uint8_t* cell, uint32_t length) {
  RecordRef record;
  record.data = cell;
  record.length = length;
  return record;
}

TEST_CASE("a cell is at most 15 bytes larger than a small record, and 63 than others") {
  for (uint32_t length = 0; length <= kLateRecordBytes; ++length) {
    const size_t size_class = RecordStore::ClassOf(length);
    const size_t bytes = RecordStore::CellBytes(size_class);
    if (size_class >= RecordStore::kNumClasses || bytes < length ||
        bytes > std::max(length, 1u) + (length <= 128 ? 15 : 63) ||
        bytes % (length <= 128 ? 16 : 64) != 0) {
      FAIL("length " << length << ", class " << size_class << ", cell of " << bytes << " bytes");
    }
  }
}

TEST_CASE("records keep their bytes among others of all sizes that come and go") {
  struct Kept {
    RecordRef record;
    uint8_t mark;
  };
  RecordStore store;
  {
    CellCache cache(store);
    std::mt19937 random(3);
    std::vector<Kept> all;
    const uint32_t lengths[] = {0,
                                1,
                                16,
                                17,
                                128,
                                129,
                                4000,
                                8191,
                                8192,
                                8193,
                                100'000,
                                LargeCells::kMaxCellBytes,
                                LargeCells::kMaxCellBytes + 1};
    for (int turn = 0; turn < 4000; ++turn) {
      if (all.size() > 60 || (!all.empty() && random() % 3 == 0)) {
        const size_t which = random() % all.size();
        const Kept kept = all[which];
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(which));
        for (uint32_t i = 0; i < kept.record.length; i += 1 + kept.record.length / 50) {
          if (kept.record.data[i] != kept.mark) FAIL("byte " << i << " of " << kept.record.length);
        }
        store.Release({&kept.record, 1});
      } else {
        // Large ones seldom.
        const size_t choices = random() % 20 == 0 ? std::size(lengths) : 9;
        const uint32_t length = lengths[random() % choices];
        const auto mark = static_cast<uint8_t>(turn);
        std::vector<uint8_t> bytes(length + 64, mark);
        all.push_back({InCell(cache.Keep(bytes.data(), length), length), mark});
        const size_t address = reinterpret_cast<size_t>(all.back().record.data);
        CHECK(address % (length <= 128 ? 16 : 64) == 0);
      }
    }
    for (const Kept& kept : all) store.Release({&kept.record, 1});
    CHECK(store.cells() == cache.size());
  }
  CHECK(store.cells() == 0);
}

TEST_CASE("what a worker has in stock does not stay behind when it ends") {
  RecordStore store;
  std::vector<RecordRef> records;
  for (int worker = 0; worker < 10; ++worker) {
    CellCache cache(store);
    for (const uint32_t length : {10, 100, 5000})
      records.push_back(InCell(cache.Take(length), length));
    CHECK(cache.size() > 0);
  }
  CHECK(store.cells() == records.size());
  // It is the next one's.
  CellCache cache(store);
  cache.Take(10);
  const uint64_t cells = store.cells();
  cache.Drain();
  CHECK(store.cells() == records.size() + 1);
  CHECK(cells > store.cells());
  store.Release(records);
  CHECK(store.cells() == 1);
}

TEST_CASE("a record goes when each of its owners has released it") {
  for (const uint32_t length : {100u, 10'000u, uint32_t{LargeCells::kMaxCellBytes} + 1}) {
    CAPTURE(length);
    RecordStore store;
    CellCache cache(store);
    const RecordRef record = InCell(cache.Take(length), length);
    const RecordRef other = InCell(cache.Take(length), length);
    cache.Drain();
    REQUIRE(store.cells() == 2);
    store.Share({&record, 1});
    store.Share({&record, 1});
    store.Release({&other, 1});
    CHECK(store.cells() == 1);
    store.Release({&record, 1});
    store.Release({&record, 1});
    CHECK(store.cells() == 1);
    store.Release({&record, 1});
    CHECK(store.cells() == 0);
  }
}

TEST_CASE("records that another one owns go with it, unless they have further owners") {
  RecordStore store;
  CellCache cells(store);
  const auto take = [&](uint32_t length) {
    RecordRef record;
    record.data = cells.Take(length);
    record.length = length;
    return record;
  };
  const RecordRef outer = take(40), inner = take(50), far = take(300'000), mine = take(50);
  cells.Drain();
  const uint64_t spare = store.cells() - 4;
  store.Own(inner.data, {far});
  store.Own(outer.data, {inner, mine});
  store.Share({&mine, 1});
  store.Share({&outer, 1});
  store.Release({&outer, 1});
  CHECK(store.cells() - spare == 4);
  store.Release({&outer, 1});
  CHECK(store.cells() - spare == 1);
  store.Release({&mine, 1});
  CHECK(store.cells() - spare == 0);
  // The cell owns nothing when it is taken again.
  CellCache more(store);
  RecordRef again;
  again.data = more.Take(40);
  again.length = 40;
  store.Release({&again, 1});
  more.Drain();
  CHECK(store.cells() - spare == 0);
}

TEST_CASE("what has no cell, or lies in a map, belongs to nobody here") {
  RecordStore store;
  RecordRef late;
  late.length = 100;
  const uint8_t byte = 0;
  RecordRef mapped = InCell(&byte, 1);
  mapped.in_map = 1;
  const RecordRef both[] = {late, mapped};
  store.Share(both);
  store.Release(both);
  store.Release(both);
  CHECK(store.cells() == 0);
}

TEST_CASE("what was lent goes with the last record that lies there") {
  RecordStore store;
  const auto memory = std::make_shared<std::vector<uint8_t>>(1 << 20);
  const RecordRef first = InCell(memory->data(), 100'000);
  const RecordRef second = InCell(memory->data() + 200'000, 100'000);
  {
    std::shared_ptr<std::vector<uint8_t>> keeper = memory;
    CellCache cache(store);
    cache.Borrow(first.data, keeper);
    // Two streams of one file.
    cache.Borrow(first.data, keeper);
    cache.Borrow(second.data, keeper);
  }
  CHECK(memory.use_count() - 1 == 2);
  CHECK(store.cells() == 2);
  const auto release = [&store](const RecordRef& record) {
    store.Release(absl::MakeConstSpan(&record, 1));
  };
  release(first);
  CHECK(memory.use_count() - 1 == 2);
  store.Share(absl::MakeConstSpan(&second, 1));
  release(second);
  CHECK(memory.use_count() - 1 == 2);
  release(second);
  CHECK(memory.use_count() - 1 == 1);
  release(first);
  CHECK(memory.use_count() - 1 == 0);
  CHECK(store.cells() == 0);
  // A cell of the store's own of the same size is none of them.
  CellCache cache(store);
  const RecordRef own = InCell(cache.Take(100'000), 100'000);
  CHECK(store.cells() == 1);
  release(own);
  CHECK(store.cells() == 0);
}

}  // namespace
}  // namespace penstock::testing
