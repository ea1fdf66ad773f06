// Sheets: what is laid is what is taken, and memory that no sound worker writes is refused.
#include "server/python/sheet_form.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace penstock::python {
namespace {

Signature Features() {
  return {{"numbers", {DType::kInt32, {3}}},
          {"flag", {DType::kBool, {}}},
          {"text", {DType::kString, {}}},
          {"words", {DType::kString, {kUnknownSize}}},
          {"matrix", {DType::kFloat64, {kUnknownSize, 2}}}};
}

std::string Words(const std::vector<std::string>& words) {
  std::string row;
  for (const std::string& word : words) {
    const auto size = static_cast<uint32_t>(word.size());
    row.append(reinterpret_cast<const char*>(&size), sizeof(size));
  }
  for (const std::string& word : words) row += word;
  return row;
}

// Rows of each kind of feature, and the columns over them.
struct Rows {
  static constexpr int kRows = 5;

  Rows() {
    for (int row = 0; row < kRows; ++row) {
      for (int i = 0; i < 3; ++i) numbers.push_back(10 * row + i);
      flags.push_back(row % 2);
      texts.push_back(std::string(row * 30, 'a' + row));
      words.push_back(Words(std::vector<std::string>(row % 3, std::string(row, 'w'))));
      word_dims.push_back(row % 3);
      matrices.push_back(std::vector<double>(2 * row, row + 0.5));
      matrix_dims.insert(matrix_dims.end(), {row, 2});
    }
    for (int row = 0; row < kRows; ++row) {
      text_places.push_back(Place(texts[row].data(), texts[row].size()));
      word_places.push_back(Place(words[row].data(), words[row].size()));
      matrix_places.push_back(Place(matrices[row].data(), matrices[row].size() * sizeof(double)));
    }
    columns.resize(5);
    columns[0] = {.data = reinterpret_cast<uint8_t*>(numbers.data()), .row_bytes = 12};
    columns[1] = {.data = flags.data(), .row_bytes = 1};
    columns[2] = {.rows = text_places.data()};
    columns[3] = {.rows = word_places.data(), .dims = word_dims.data()};
    columns[4] = {.rows = matrix_places.data(), .dims = matrix_dims.data()};
  }

  static RowBytes Place(const void* data, size_t size) {
    return {static_cast<const uint8_t*>(data), size};
  }

  std::vector<int32_t> numbers;
  std::vector<uint8_t> flags;
  std::vector<std::string> texts, words;
  std::vector<std::vector<double>> matrices;
  std::vector<int64_t> word_dims, matrix_dims;
  std::vector<RowBytes> text_places, word_places, matrix_places;
  std::vector<Column> columns;
};

std::string RowOf(const Column& column, int row) {
  return std::string(reinterpret_cast<const char*>(column.row(row)), column.row_size(row));
}

TEST_CASE("Where a feature of fixed size has a place, its rows go there and nowhere else") {
  const SheetForm form(Features());
  const Rows rows;
  Arena arena;
  std::vector<uint8_t> tray(form.Measure(rows.columns, 0, Rows::kRows));
  form.Lay(rows.columns, 0, Rows::kRows, tray.data());
  std::vector<int32_t> place(3 * Rows::kRows);
  std::vector<Column> columns(5);
  columns[0].data = reinterpret_cast<uint8_t*>(place.data());
  form.Prepare(Rows::kRows, absl::MakeSpan(columns), &arena);
  REQUIRE(form.Take(tray.data(), tray.size(), 0, Rows::kRows, Rows::kRows, absl::MakeSpan(columns),
                    &arena)
              .ok());
  CHECK(columns[0].data == reinterpret_cast<uint8_t*>(place.data()));
  CHECK(columns[0].row_bytes == 12);
  CHECK(place == rows.numbers);
  CHECK(columns[1].data != nullptr);
}

TEST_CASE("Large rows that others read next have the same bytes, and lie in their place alone") {
  constexpr int64_t kBytes = (64 << 10) + 3;
  const SheetForm form({{"image", {DType::kUint8, {kBytes}}}});
  std::vector<uint8_t> images(3 * kBytes);
  for (size_t i = 0; i < images.size(); ++i) images[i] = static_cast<uint8_t>(7 * i + i / 251);
  std::vector<Column> columns(1), taken(1);
  columns[0] = {.data = images.data(), .row_bytes = kBytes};
  std::vector<uint8_t> tray(form.Measure(columns, 0, 3));
  form.Lay(columns, 0, 3, tray.data());
  // Of a batch of four rows at an odd place the two in the middle are made.
  std::vector<uint8_t> batch(4 * kBytes + 1, 0xee), expected = batch;
  std::copy_n(images.begin(), 2 * kBytes, expected.begin() + 1 + kBytes);
  taken[0].data = batch.data() + 1;
  Arena arena;
  CHECK(form.Prepare(4, absl::MakeSpan(taken), &arena));
  REQUIRE(form.Take(tray.data(), tray.size(), 1, 2, 3, absl::MakeSpan(taken), &arena,
                    /*for_others=*/true)
              .ok());
  CHECK(batch == expected);
  taken[0] = {};
  CHECK(!form.Prepare(4, absl::MakeSpan(taken), &arena));
}

TEST_CASE("A large row of numbers goes to the room of a lone row, and no other one") {
  constexpr int64_t kLarge = 64 << 10;
  struct Room : LoneRowRoom {
    uint8_t* Take(uint64_t bytes) override {
      asked.push_back(bytes);
      return is_full ? nullptr : memory.data();
    }
    std::vector<uint8_t> memory = std::vector<uint8_t>(kLarge);
    std::vector<uint64_t> asked;
    bool is_full = false;
  };
  struct {
    DType dtype;
    int64_t bytes;
    bool is_full;
    bool is_asked;
  } const cases[] = {{DType::kUint8, kLarge, false, true},
                     {DType::kUint8, kLarge - 1, false, false},
                     {DType::kFloat32, kLarge, false, true},
                     {DType::kBool, kLarge, false, false},
                     {DType::kUint8, kLarge, true, true}};
  for (const auto& [dtype, bytes, is_full, is_asked] : cases) {
    CAPTURE(TypeToString({dtype, {}}), bytes, is_full);
    const SheetForm form({{"row", {dtype, {kUnknownSize}}}});
    std::vector<uint8_t> row(bytes);
    for (int64_t i = 0; i < bytes; ++i)
      row[i] = dtype == DType::kBool ? i % 3 == 0 : (i * 7) & 0xff;
    const RowBytes place = {row.data(), row.size()};
    const int64_t dims = bytes / static_cast<int64_t>(DTypeSize(dtype));
    std::vector<Column> columns = {{.rows = &place, .dims = &dims}}, taken(1);
    std::vector<uint8_t> tray(form.Measure(columns, 0, 1));
    form.Lay(columns, 0, 1, tray.data());
    Room room;
    room.is_full = is_full;
    Arena arena;
    form.Prepare(1, absl::MakeSpan(taken), &arena);
    REQUIRE(form.Take(tray.data(), tray.size(), 0, 1, 1, absl::MakeSpan(taken), &arena,
                      /*for_others=*/false, &room)
                .ok());
    CHECK((taken[0].rows[0].data == room.memory.data()) == (is_asked && !is_full));
    CHECK(room.asked.size() == (is_asked ? 1 : 0));
    CHECK(std::equal(row.begin(), row.end(), taken[0].rows[0].data));
    CHECK(taken[0].dims[0] == dims);
    // What is not as long as its shape says is refused before anything is asked for.
    const int64_t forged = dims + 1;
    columns[0].dims = &forged;
    form.Lay(columns, 0, 1, tray.data());
    room.asked.clear();
    CHECK_FALSE(form.Take(tray.data(), tray.size(), 0, 1, 1, absl::MakeSpan(taken), &arena,
                          /*for_others=*/false, &room)
                    .ok());
    CHECK(room.asked.empty());
  }
}

TEST_CASE("What is laid on a tray is what is taken from it, in any parts") {
  const SheetForm form(Features());
  const Rows rows;
  for (const int part : {1, 2, 5}) {
    Arena arena;
    std::vector<Column> taken(5);
    form.Prepare(Rows::kRows, absl::MakeSpan(taken), &arena);
    for (int first = 0; first < Rows::kRows; first += part) {
      const int count = std::min(part, Rows::kRows - first);
      std::vector<uint8_t> tray(form.Measure(rows.columns, first, count) + 64);
      form.Lay(rows.columns, first, count, tray.data());
      REQUIRE(
          form.Take(tray.data(), tray.size(), first, count, count, absl::MakeSpan(taken), &arena)
              .ok());
    }
    for (int row = 0; row < Rows::kRows; ++row) {
      for (size_t i = 0; i < taken.size(); ++i)
        CHECK(RowOf(taken[i], row) == RowOf(rows.columns[i], row));
      CHECK(taken[3].dims[row] == rows.word_dims[row]);
      CHECK(taken[4].dims[2 * row] == rows.matrix_dims[2 * row]);
    }
  }
}

TEST_CASE("Of a sheet whose row fails, those in front of it are taken") {
  const SheetForm form(Features());
  const Rows rows;
  std::vector<uint8_t> tray(form.Measure(rows.columns, 0, Rows::kRows) + 64);
  form.Lay(rows.columns, 0, Rows::kRows, tray.data());
  Arena arena;
  std::vector<Column> taken(5);
  form.Prepare(Rows::kRows, absl::MakeSpan(taken), &arena);
  REQUIRE(
      form.Take(tray.data(), tray.size(), 0, 3, Rows::kRows, absl::MakeSpan(taken), &arena).ok());
  for (size_t i = 0; i < taken.size(); ++i) CHECK(RowOf(taken[i], 2) == RowOf(rows.columns[i], 2));
  CHECK(taken[2].rows[3].size == 0);
}

TEST_CASE("More rows than were asked for are refused (forged)") {
  const SheetForm form(Features());
  const Rows rows;
  std::vector<uint8_t> tray(form.Measure(rows.columns, 0, Rows::kRows));
  form.Lay(rows.columns, 0, Rows::kRows, tray.data());
  for (const uint32_t made : {Rows::kRows + 1u, UINT32_MAX}) {
    Arena arena;
    std::vector<Column> taken(5);
    form.Prepare(Rows::kRows, absl::MakeSpan(taken), &arena);
    CHECK(absl::IsInternal(
        form.Take(tray.data(), tray.size(), 0, made, Rows::kRows, absl::MakeSpan(taken), &arena)));
  }
}

TEST_CASE(
    "Memory that no sound worker writes is refused or taken, and never read beyond (forged)") {
  const SheetForm form(Features());
  const Rows rows;
  const uint64_t bytes = form.Measure(rows.columns, 0, Rows::kRows);
  std::vector<uint8_t> sound(bytes);
  form.Lay(rows.columns, 0, Rows::kRows, sound.data());
  std::mt19937_64 dice(7);
  const uint64_t words[] = {0,          1,          63,         bytes - 1,  bytes,      bytes + 1,
                            UINT32_MAX, 1ull << 32, 1ull << 40, 1ull << 62, 1ull << 63, UINT64_MAX};
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> forged = sound;
    for (uint64_t changes = 1 + dice() % 3; changes > 0; --changes) {
      const uint64_t word = words[dice() % std::size(words)];
      std::memcpy(&forged[dice() % (bytes / 8) * 8], &word, sizeof(word));
    }
    const uint64_t told = dice() % 8 == 0 ? dice() % (bytes + 1) : bytes;
    Arena arena;
    std::vector<Column> taken(5);
    form.Prepare(Rows::kRows, absl::MakeSpan(taken), &arena);
    const absl::Status status =
        form.Take(forged.data(), told, 0, Rows::kRows, Rows::kRows, absl::MakeSpan(taken), &arena);
    refused += !status.ok();
    if (!status.ok()) {
      CHECK(absl::IsInternal(status));
      continue;
    }
    for (int row = 0; row < Rows::kRows; ++row) {
      CHECK(taken[1].data[row] <= 1);
      uint64_t expected = static_cast<uint64_t>(taken[3].dims[row]) * sizeof(uint32_t);
      REQUIRE(expected <= taken[3].row_size(row));
      for (int64_t word = 0; word < taken[3].dims[row]; ++word) {
        uint32_t size = 0;
        std::memcpy(&size, taken[3].row(row) + word * sizeof(size), sizeof(size));
        expected += size;
      }
      CHECK(expected == taken[3].row_size(row));
      CHECK(taken[4].row_size(row) ==
            static_cast<uint64_t>(taken[4].dims[2 * row] * taken[4].dims[2 * row + 1]) * 8);
    }
  }
  CHECK(refused > 5000);
}

}  // namespace
}  // namespace penstock::python
