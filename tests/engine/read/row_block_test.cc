// Rows of one element in a block: what is loaded of them, how long the block stays, and what it
// keeps of others.
#include "server/engine/read/row_block.h"

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/file.h"
#include "server/engine/read/element_cells.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

constexpr uint32_t kRows = 100;

// Numbers side by side, strings, and lists of numbers of a size of their own.
struct Rows {
  Signature features = {{"number", {DType::kInt64, {}}},
                        {"text", {DType::kString, {}}},
                        {"list", {DType::kInt32, {kUnknownSize}}}};
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> lists;
  std::vector<RowBytes> text_rows, list_rows;
  std::vector<int64_t> sizes;
  std::vector<Column> columns;

  Rows() {
    for (uint32_t row = 0; row < kRows; ++row) {
      numbers.push_back(int64_t{1} << (row % 60));
      texts.push_back(std::string(row % 7 * 11, static_cast<char>('a' + row % 26)));
      lists.emplace_back(row % 5, static_cast<int32_t>(row));
    }
    for (uint32_t row = 0; row < kRows; ++row) {
      text_rows.push_back({reinterpret_cast<const uint8_t*>(texts[row].data()), texts[row].size()});
      list_rows.push_back(
          {reinterpret_cast<const uint8_t*>(lists[row].data()), lists[row].size() * 4});
      sizes.push_back(static_cast<int64_t>(lists[row].size()));
    }
    columns.resize(3);
    columns[0] = {.data = reinterpret_cast<uint8_t*>(numbers.data()), .row_bytes = 8};
    columns[1] = {.rows = text_rows.data()};
    columns[2] = {.rows = list_rows.data(), .dims = sizes.data()};
  }

  // Whether row `at` of loaded columns is row `row` of these.
  bool Are(const std::vector<Column>& loaded, size_t at, uint32_t row) const {
    const auto same = [&](int i, const void* data, size_t size) {
      return loaded[i].row_size(at) == size &&
             (size == 0 || std::memcmp(loaded[i].row(at), data, size) == 0);
    };
    return same(0, &numbers[row], 8) && same(1, texts[row].data(), texts[row].size()) &&
           same(2, lists[row].data(), lists[row].size() * 4) && loaded[2].dims[at] == sizes[row];
  }
};

RecordRef RowOf(const RowBlock* block, uint32_t row) {
  RecordRef reference;
  reference.data = reinterpret_cast<const uint8_t*>(block);
  reference.length = row;
  reference.resolved = 1;
  return reference;
}

std::vector<Column> LoadRows(const ElementCells& cells, const std::vector<RecordRef>& references,
                             Arena& arena) {
  const Manifest manifest;
  FileTable files(LocalFileSystem(), manifest);
  std::vector<Column> out(cells.output().size());
  REQUIRE(cells
              .Load({references.data(), static_cast<uint32_t>(references.size()), 1}, files,
                    absl::MakeSpan(out), arena)
              .ok());
  return out;
}

TEST_CASE("a block shows the rows that it was made of, in any order and beside cells") {
  const Rows rows;
  const ElementCells loader(rows.features);
  RecordStore store;
  CellCache cells(store);
  auto* const block =
      const_cast<RowBlock*>(RowBlock::Make(rows.features, rows.columns, 10, kRows - 20, {}, cells));
  block->path = 77;
  block->first_row = 10;
  CHECK_FALSE(block->shows());
  for (const uint32_t step : {1u, 3u, 79u}) {
    std::vector<RecordRef> references;
    for (uint32_t i = 0; i < kRows - 20; ++i) references.push_back(RowOf(block, i * step % 80));
    Arena arena;
    const std::vector<Column> out = LoadRows(loader, references, arena);
    for (uint32_t i = 0; i < references.size(); ++i) REQUIRE(rows.Are(out, i, 10 + i * step % 80));
  }
  CHECK(ElementCells::PackedPath(RowOf(block, 3)) == MixPath(77, 13));
  // A cell of its own has the same path, and the same value.
  RecordRef alone;
  REQUIRE(loader.Pack(rows.columns, 13, cells, &alone, MixPath(77, 13)).ok());
  CHECK(loader.Path(alone) == loader.Path(RowOf(block, 3)));
  for (const size_t feature : {0, 1, 2})
    CHECK(*loader.Value(alone, feature) == *loader.Value(RowOf(block, 3), feature));
  Arena arena;
  const std::vector<Column> both =
      LoadRows(loader, {RowOf(block, 5), alone, RowOf(block, 6)}, arena);
  CHECK(rows.Are(both, 0, 15));
  CHECK(rows.Are(both, 1, 13));
  CHECK(rows.Are(both, 2, 16));
}

TEST_CASE("a block stays until each of its rows is released, and is counted by them") {
  const Rows rows;
  RecordStore store;
  CellCache cells(store);
  const RowBlock* const block = RowBlock::Make(rows.features, rows.columns, 0, kRows, {}, cells);
  cells.Drain();
  const uint64_t taken = store.cells();
  RecordList all;
  for (uint32_t row = 0; row < kRows; ++row) all.push_back(RowOf(block, row));
  const uint64_t held = HeldBytes(all);
  CHECK(held <= block->bytes);
  CHECK(held > block->bytes - kRows);
  store.Share(absl::MakeConstSpan(all).first(2));
  store.Release(absl::MakeConstSpan(all).first(kRows / 2));
  store.Release(absl::MakeConstSpan(all).subspan(kRows / 2));
  store.Release(absl::MakeConstSpan(all).first(1));
  CHECK(store.cells() == taken);
  store.Release(absl::MakeConstSpan(all).subspan(1, 1));
  CHECK(store.cells() == taken - 1);
}

TEST_CASE("what lies in the cell of an element stays there, and the cell with it") {
  const Rows rows;
  RecordStore store;
  CellCache cells(store);
  // All texts in one cell.
  std::string joined;
  for (const std::string& text : rows.texts) joined += text;
  RecordRef element;
  uint8_t* const cell = cells.Take(static_cast<uint32_t>(joined.size()));
  std::memcpy(cell, joined.data(), joined.size());
  element.data = cell;
  element.length = static_cast<uint32_t>(joined.size());
  std::vector<RowBytes> places;
  for (size_t row = 0, at = 0; row < kRows; at += rows.texts[row++].size())
    places.push_back({cell + at, rows.texts[row].size()});
  const Signature features = {rows.features[0], rows.features[1]};
  const std::vector<Column> columns = {rows.columns[0], {.rows = places.data()}};
  const RowBlock* const block =
      RowBlock::Make(features, columns, 0, kRows, {element.data, element.length}, cells);
  REQUIRE(block->shows());
  CHECK(block->bytes < kRows * 26 + 200);
  CHECK(block->columns()[1].rows[60].data == places[60].data);
  CHECK(RowBlock::Holds(RowOf(block, 0), places[60]));
  CHECK(RowBlock::Holds(RowOf(block, 0), {block->columns()[0].row(5), 8}));
  CHECK_FALSE(RowBlock::Holds(RowOf(block, 0), rows.text_rows[60]));
  store.Own(RowOf(block, 0).data, {element});
  cells.Drain();
  const uint64_t taken = store.cells();
  RecordList all;
  for (uint32_t row = 0; row < kRows; ++row) all.push_back(RowOf(block, row));
  store.Release(absl::MakeConstSpan(all).first(kRows - 1));
  CHECK(store.cells() == taken);
  store.Release(absl::MakeConstSpan(all).last(1));
  CHECK(store.cells() == taken - 2);
}

TEST_CASE("blocks are cut where they are full, and none is made of rows that fill one") {
  const std::string large(300'000, 'x'), small(1000, 'y');
  const Signature features = {{"text", {DType::kString, {}}}};
  const auto next = [&](const std::vector<const std::string*>& texts) {
    std::vector<RowBytes> places;
    for (const std::string* text : texts)
      places.push_back({reinterpret_cast<const uint8_t*>(text->data()), text->size()});
    const Column column = {.rows = places.data()};
    return RowBlock::RowsOfNext(features, {&column, 1}, 0, static_cast<uint32_t>(texts.size()), {});
  };
  CHECK(next(std::vector<const std::string*>(100, &small)) == 100u);
  const std::optional<uint32_t> cut = next(std::vector<const std::string*>(5000, &small));
  REQUIRE(cut.has_value());
  CHECK(*cut * 1024 <= RowBlock::kMaxBytes);
  CHECK((*cut + 1) * 1024 > RowBlock::kMaxBytes);
  CHECK_FALSE(next(std::vector<const std::string*>(10, &large)).has_value());
}

TEST_CASE("an element in a cell is no row of a block, whatever it was made of") {
  const Rows rows;
  const ElementCells loader(rows.features);
  RecordStore store;
  CellCache cells(store);
  RecordRef element;
  element.resolved = 1;
  CHECK_FALSE(RowBlock::HasRow(element));
  REQUIRE(loader.Pack(rows.columns, 7, cells, &element, 1).ok());
  CHECK_FALSE(RowBlock::HasRow(element));
  Arena arena;
  CHECK(rows.Are(LoadRows(loader, {element}, arena), 0, 7));
}

TEST_CASE("every reference has an address of its own") {
  const Rows rows;
  RecordStore store;
  CellCache cells(store);
  const RowBlock* const one = RowBlock::Make(rows.features, rows.columns, 0, kRows, {}, cells);
  const RowBlock* const other = RowBlock::Make(rows.features, rows.columns, 0, kRows, {}, cells);
  CHECK(one->bytes >= kRows);
  CHECK(RowBlock::KeyOf(RowOf(one, 1)) != RowBlock::KeyOf(RowOf(one, 2)));
  CHECK(RowBlock::KeyOf(RowOf(one, 99)) != RowBlock::KeyOf(RowOf(other, 0)));
  CHECK(RowBlock::KeyOf(RowOf(other, 99)) != RowBlock::KeyOf(RowOf(one, 0)));
  // Of rows without bytes, too: none is another cell's.
  const Signature nothing = {{"nothing", {DType::kInt64, {0}}}};
  const Column column = {.data = cells.Take(1)};
  CHECK(RowBlock::Make(nothing, {&column, 1}, 0, 5000, {}, cells)->bytes >= 5000);
}

}  // namespace
}  // namespace penstock::testing
