// Rows of drawn shapes, laid into memory that ends where the last part does, against the same done
// element by element.
#include "server/engine/tensor/variable_rows.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/row_shape.h"
#include "base/staying_room.h"
#include "server/engine/tensor/pad_rows.h"
#include "tests/support/catch.h"
#include "tests/support/stops_soon.h"

namespace penstock {
namespace {

// One row: its shape, and each element's bytes.
struct Row {
  Shape shape;
  std::vector<std::string> elements;
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int64_t Below(int64_t bound) { return static_cast<int64_t>(engine_() % bound); }

  Row DrawRow(const TensorType& type, const Shape& fixed) {
    Row row;
    for (size_t axis = 0; axis < type.shape.size(); ++axis)
      row.shape.push_back(fixed[axis] >= 0 ? fixed[axis] : Below(4));
    for (int64_t i = *NumElements(row.shape); i > 0; --i) {
      const bool is_string = type.dtype == DType::kString;
      std::string& element =
          row.elements.emplace_back(is_string ? Below(4) : DTypeSize(type.dtype), '\0');
      for (char& c : element) c = static_cast<char>(1 + Below(200));
    }
    return row;
  }

 private:
  std::mt19937_64 engine_;
};

// The rows as a column has them.
struct Rows {
  Rows(const TensorType& type, const std::vector<Row>& from) {
    for (const Row& row : from) {
      std::string& bytes = packed.emplace_back();
      if (type.dtype == DType::kString && !type.shape.empty()) {
        for (const std::string& element : row.elements) {
          const auto size = static_cast<uint32_t>(element.size());
          bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
        }
      }
      for (const std::string& element : row.elements) bytes += element;
      dims.insert(dims.end(), row.shape.begin(), row.shape.end());
    }
    for (const std::string& bytes : packed)
      rows.push_back({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    column.rows = rows.data();
    if (HasUnknownAxes(type.shape)) column.dims = dims.data();
  }
  // Puts some rows into a room.
  void MoveSome(StayingRoom& room, Dice* dice) {
    for (RowBytes& row : rows) {
      if (dice->Below(2) == 0) continue;
      uint8_t* const to = room.Allocate(row.size);
      if (row.size > 0) std::memcpy(to, row.data, row.size);
      row.data = to;
    }
  }

  std::vector<std::string> packed;
  std::vector<RowBytes> rows;
  std::vector<int64_t> dims;
  Column column;
};

// Two records for each row: the row lies in the cell of one of them, but now and then in neither's.
std::vector<RecordRef> RecordsOf(const Rows& rows, Dice* dice) {
  std::vector<RecordRef> records;
  for (const RowBytes& row : rows.rows) {
    RecordRef pair[2];
    RecordRef& record = pair[dice->Below(2)];
    record.data = row.data;
    record.length = static_cast<uint32_t>(row.size);
    // What changes, or ends within the row, is no place to keep.
    if (dice->Below(16) == 0) record.in_map = 1;
    if (row.size > 0 && dice->Below(16) == 0) --record.length;
    records.insert(records.end(), pair, pair + 2);
  }
  return records;
}

std::string Bytes(const std::vector<int64_t>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)};
}

// The parts of all elements, in their order.
std::vector<std::string> ElementParts(const TensorType& type,
                                      const std::vector<std::string>& elements) {
  std::string bytes;
  std::vector<int64_t> offsets = {0};
  for (const std::string& element : elements) {
    bytes += element;
    offsets.push_back(static_cast<int64_t>(bytes.size()));
  }
  if (type.dtype != DType::kString) return {bytes};
  return {Bytes(offsets), bytes};
}

// Appends the elements of `row` as one of shape `to`, what it lacks being `padding`.
void AppendPadded(const Row& row, const Shape& to, const std::string& padding,
                  std::vector<std::string>* elements) {
  Shape index(to.size(), 0);
  for (int64_t i = *NumElements(to); i > 0; --i) {
    int64_t place = 0;
    bool inside = true;
    for (size_t axis = 0; axis < to.size(); ++axis) {
      inside = inside && index[axis] < row.shape[axis];
      place = place * row.shape[axis] + index[axis];
    }
    elements->push_back(inside ? row.elements[place] : padding);
    for (size_t axis = to.size(); axis > 0 && ++index[axis - 1] == to[axis - 1]; --axis)
      index[axis - 1] = 0;
  }
}

// The splits of one ragged axis, by going through all rows of the axis before.
std::vector<int64_t> Splits(const std::vector<Row>& rows, size_t axis, uint32_t more_rows) {
  std::vector<int64_t> splits = {0};
  for (const Row& row : rows) {
    int64_t count = 1;
    for (size_t i = 0; i < axis; ++i) count *= row.shape[i];
    for (; count > 0; --count) splits.push_back(splits.back() + row.shape[axis]);
  }
  if (axis == 0) splits.insert(splits.end(), more_rows, splits.back());
  return splits;
}

TEST_CASE("rows of any shape come to lie where their kind says, and nowhere else") {
  const TensorType types[] = {
      {DType::kInt64, {kUnknownSize}},
      {DType::kUint8, {kUnknownSize, kUnknownSize, 3}},
      {DType::kFloat16, {2, kUnknownSize}},
      {DType::kString, {}},
      {DType::kString, {3}},
      {DType::kString, {kUnknownSize}},
      {DType::kString, {kUnknownSize, 2, kUnknownSize}},
  };
  Dice dice(7);
  StayingRooms rooms;
  int laid = 0;
  for (int round = 0; round < 1500; ++round) {
    const TensorType& type = types[dice.Below(std::size(types))];
    const auto form = static_cast<BatchForm::Kind>(dice.Below(3));
    const bool is_string = type.dtype == DType::kString;
    const bool has_unknown = HasUnknownAxes(type.shape);
    const auto valid = static_cast<uint32_t>(1 + dice.Below(9));
    const uint32_t more = dice.Below(2) == 0 ? 0 : dice.Below(4);
    const auto block_rows = static_cast<uint32_t>(1 << dice.Below(4));

    BatchTensor tensor{"x", type};
    tensor.type.shape.insert(tensor.type.shape.begin(), valid + more);
    tensor.kind = is_string ? TensorKind::kString : TensorKind::kDense;
    RowLayout layout{type, type.shape};
    Shape fixed = type.shape;
    if (form == BatchForm::Kind::kPadded) {
      layout.pads = has_unknown || is_string;
      layout.padding = std::string(is_string ? dice.Below(3) : DTypeSize(type.dtype), 'p');
      if (!type.shape.empty() && dice.Below(2) == 0) {
        layout.shape[0] = std::max<int64_t>(3, type.shape[0]) + dice.Below(2);
        tensor.type.shape[1] = layout.shape[0];
      }
      if (tensor.fixed()) continue;
    } else if (form == BatchForm::Kind::kRagged && has_unknown) {
      tensor.kind = TensorKind::kRagged;
      tensor.ragged_rank = static_cast<int>(type.shape.size());
      while (type.shape[tensor.ragged_rank - 1] >= 0) --tensor.ragged_rank;
      if (tensor.ragged_rank > (is_string ? 2 : 3)) continue;  // a plan refuses it
    } else {
      for (int64_t& size : fixed) size = size >= 0 ? size : dice.Below(4);
    }
    std::vector<Row> rows;
    for (uint32_t i = 0; i < valid; ++i) rows.push_back(dice.DrawRow(type, fixed));

    // What is expected.
    std::vector<std::string> elements, parts;
    Shape shape = rows[0].shape;
    for (const Row& row : rows) {
      for (size_t axis = 0; axis < shape.size(); ++axis)
        shape[axis] = std::max(shape[axis], row.shape[axis]);
    }
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (layout.shape[axis] >= 0) shape[axis] = layout.shape[axis];
    }
    const bool ragged = tensor.kind == TensorKind::kRagged;
    for (const Row& row : rows) {
      if (ragged) {
        elements.insert(elements.end(), row.elements.begin(), row.elements.end());
      } else {
        AppendPadded(row, shape, layout.padding, &elements);
      }
    }
    std::string filler = layout.padding;
    if (filler.empty() && !is_string) filler.assign(DTypeSize(type.dtype), '\0');
    if (!ragged) elements.insert(elements.end(), more * *NumElements(shape), filler);
    parts = ElementParts(type, elements);
    if (ragged) {
      for (int axis = 0; axis < tensor.ragged_rank; ++axis)
        parts.push_back(Bytes(Splits(rows, axis, more)));
    } else if (HasUnknownAxes(tensor.type.shape)) {
      std::vector<int64_t> sizes(shape.begin(), shape.end());
      sizes.insert(sizes.begin(), valid + more);
      parts.push_back(Bytes(sizes));
    }

    VariableRows variable;
    variable.Reset({&tensor, 1}, {&layout, 1}, valid);
    // Blocks of any size, from both ends, some of them in two parts, some of which lie in cells or
    // in a room that somebody else has as soon as nobody holds it.
    std::deque<Rows> cells;
    for (uint32_t begin = 0, end = valid; begin < end;) {
      const auto size = static_cast<uint32_t>(1 + dice.Below(std::min(end - begin, block_rows)));
      const uint32_t first = dice.Below(2) == 0 ? begin : end - size;
      const auto in_first_part = static_cast<uint32_t>(1 + dice.Below(size));
      const uint32_t block = variable.TakeBlock();
      for (const auto& [from, to] :
           {std::pair(first, first + in_first_part), {first + in_first_part, first + size}}) {
        if (from == to) continue;
        const int64_t where = dice.Below(3);
        if (where == 0) {
          const Rows part(type, {rows.begin() + from, rows.begin() + to});
          REQUIRE(variable.Put(0, block, from, to - from, part.column).ok());
          continue;
        }
        Rows& part = cells.emplace_back(type, std::vector(rows.begin() + from, rows.begin() + to));
        const std::vector<RecordRef> records = RecordsOf(part, &dice);
        const std::shared_ptr<StayingRoom> room = where == 2 ? rooms.Take() : nullptr;
        if (room != nullptr) part.MoveSome(*room, &dice);
        const StayingRoom::Scope scope(room.get());
        REQUIRE(variable.Put(0, block, from, to - from, part.column, records.data(), 2).ok());
      }
      (first == begin ? begin : end) += first == begin ? size : -size;
    }
    ClaimedSlot slot;
    std::vector<TensorExtent> extents;
    CHECK_FALSE(variable.Lay(slot, valid, valid + more, &extents).ok());
    REQUIRE(extents.size() == 1);
    uint64_t bytes = 0, end = 0;
    for (const TensorExtent::Part& part : extents[0].parts) {
      CHECK(part.offset % 64 == 0);
      if (part.bytes > 0) end = part.offset + part.bytes;
      bytes = std::max(bytes, part.offset + part.bytes);
    }
    // What it needs is that and the spare bytes; it touches no byte behind its last part.
    slot.variable_bytes = (bytes + 64 + 63) / 64 * 64;
    const std::unique_ptr<uint8_t[]> memory(new uint8_t[std::max<uint64_t>(end, 1)]);
    slot.variable = memory.get();
    const RowStatus status = variable.Lay(slot, valid, valid + more, &extents);
    INFO(status.status.ToString());
    REQUIRE(status.ok());
    for (size_t i = 0; i < parts.size(); ++i) {
      CAPTURE(round, i, TypeToString(type));
      const TensorExtent::Part& part = extents[0].parts[i];
      REQUIRE(part.bytes == parts[i].size());
      CHECK((part.bytes == 0 ||
             std::memcmp(memory.get() + part.offset, parts[i].data(), part.bytes) == 0));
    }
    ++laid;
  }
  CHECK(laid > 1000);
}

TEST_CASE("What a lone row has in the slot from the beginning stays where it is") {
  // An image, and a label whose size is not known either: the step is one element.
  const TensorType image_type{DType::kUint8, {kUnknownSize, 2}};
  const TensorType label_type{DType::kInt64, {kUnknownSize}};
  const BatchTensor tensors[] = {{"image", image_type, false}, {"label", label_type, false}};
  const RowLayout layouts[] = {{image_type, image_type.shape}, {label_type, label_type.shape}};
  const std::vector<uint8_t> image = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> label = {7, 8}, image_dims = {3, 2}, label_dims = {2};
  VariableRows variable;
  variable.Reset(tensors, layouts, 1);
  std::vector<uint8_t> memory(1024 + 64);
  ClaimedSlot slot;
  slot.variable = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  slot.variable_bytes = 1024;
  LoneRowRoom* const room = variable.RoomIn(slot);
  REQUIRE(room != nullptr);
  CHECK(room->Take(1025) == nullptr);
  // What an earlier try had taken is not laid over.
  uint8_t* const void_place = room->Take(10);
  uint8_t* const place = room->Take(image.size());
  REQUIRE(void_place == slot.variable);
  REQUIRE(place == slot.variable + 128);
  std::copy(image.begin(), image.end(), place);
  const RowBytes rows[] = {{place, image.size()},
                           {reinterpret_cast<const uint8_t*>(label.data()), 16}};
  const uint32_t block = variable.TakeBlock();
  REQUIRE(variable.Put(0, block, 0, 1, {.rows = &rows[0], .dims = image_dims.data()}).ok());
  REQUIRE(variable.Put(1, block, 0, 1, {.rows = &rows[1], .dims = label_dims.data()}).ok());
  std::vector<TensorExtent> extents;
  REQUIRE(variable.Lay(slot, 1, 1, &extents).ok());
  REQUIRE(extents.size() == 2);
  const auto part = [&](int tensor, int number) {
    const TensorExtent::Part& found = extents[tensor].parts[number];
    return std::string(reinterpret_cast<const char*>(slot.variable) + found.offset, found.bytes);
  };
  CHECK(extents[0].parts[0].offset == 128);
  CHECK(part(0, 0) == std::string(image.begin(), image.end()));
  CHECK(part(0, 1) == Bytes(image_dims));
  CHECK(part(1, 0) == Bytes(label));
  CHECK(part(1, 1) == Bytes(label_dims));
  // The next step has none of it.
  variable.Reset(tensors, layouts, 1);
  CHECK(variable.RoomIn(slot)->Take(10) == slot.variable);
}

TEST_CASE("Rows that are laid together with others have no place in the slot before") {
  const TensorType type{DType::kUint8, {kUnknownSize}};
  ClaimedSlot slot;
  std::vector<uint8_t> memory(256);
  slot.variable = memory.data();
  slot.variable_bytes = memory.size();
  for (const bool is_batched : {false, true}) {
    for (const bool pads : {false, true}) {
      BatchTensor tensor{"x", type, is_batched};
      if (is_batched) tensor.type.shape.insert(tensor.type.shape.begin(), 1);
      RowLayout layout{type, type.shape};
      layout.pads = pads;
      VariableRows variable;
      variable.Reset({&tensor, 1}, {&layout, 1}, 1);
      CHECK((variable.RoomIn(slot) != nullptr) == (!is_batched && !pads));
    }
  }
}

TEST_CASE("sizes that no memory has are refused, not multiplied round") {
  BatchTensor tensor{"x", {DType::kInt64, {2, kUnknownSize, kUnknownSize}}};
  RowLayout layout{
      {DType::kInt64, {kUnknownSize, kUnknownSize}}, {kUnknownSize, kUnknownSize}, true};
  const std::vector<int64_t> dims = {int64_t{1} << 40, 0, 0, int64_t{1} << 40};
  const RowBytes rows[] = {{nullptr, 0}, {nullptr, 0}};
  VariableRows variable;
  variable.Reset({&tensor, 1}, {&layout, 1}, 1);
  REQUIRE(variable.Put(0, variable.TakeBlock(), 0, 2, {nullptr, 0, rows, dims.data()}).ok());
  ClaimedSlot slot;
  slot.variable_bytes = uint64_t{1} << 40;
  std::vector<TensorExtent> extents;
  const RowStatus status = variable.Lay(slot, 2, 2, &extents);
  CHECK(status.status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(status.row == -1);
}

// One large row through the daemon's hands into its batch.
TEST_CASE("fault 35: a large row looks for a stop all over its way into a batch") {
  constexpr int64_t kBytes = int64_t{128} << 20, kStrings = int64_t{1} << 23, kEach = 12;
  std::string strings;
  const auto each = static_cast<uint32_t>(kEach);
  for (int64_t i = 0; i < kStrings; ++i)
    strings.append(reinterpret_cast<const char*>(&each), sizeof(each));
  strings.append(kStrings * kEach, 's');
  const struct {
    const char* name;
    TensorType type;
    RowLayout layout;
    std::string row;
    int64_t size;
  } cases[] = {
      {"numbers",
       {DType::kUint8, {2, kUnknownSize}},
       {{DType::kUint8, {kUnknownSize}}, {kUnknownSize}, false},
       std::string(kBytes, 'n'),
       kBytes},
      {"padded numbers",
       {DType::kUint8, {2, kUnknownSize}},
       {{DType::kUint8, {kUnknownSize}}, {kUnknownSize}, true, "p"},
       std::string(kBytes, 'n'),
       kBytes},
      {"a text",
       {DType::kString, {2}},
       {{DType::kString, {}}, {}, false},
       std::string(kBytes, 't'),
       0},
      {"strings",
       {DType::kString, {2, kUnknownSize}},
       {{DType::kString, {kUnknownSize}}, {kUnknownSize}, false},
       strings,
       kStrings},
      {"padded strings",
       {DType::kString, {2, kUnknownSize}},
       {{DType::kString, {kUnknownSize}}, {kUnknownSize}, true, "p"},
       strings,
       kStrings},
  };
  for (const auto& test : cases) {
    DYNAMIC_SECTION(test.name) {
      const BatchTensor tensor{"x", test.type};
      const RowBytes row{reinterpret_cast<const uint8_t*>(test.row.data()), test.row.size()};
      const Column column{nullptr, 0, &row, test.size > 0 ? &test.size : nullptr};
      ClaimedSlot slot;
      slot.variable_bytes = uint64_t{1} << 30;
      const std::unique_ptr<uint8_t[]> memory(new uint8_t[slot.variable_bytes]);
      slot.variable = memory.get();
      test::CheckStopsSoon([&] {
        VariableRows variable;
        variable.Reset({&tensor, 1}, {&test.layout, 1}, 1);
        std::vector<TensorExtent> extents;
        // Not inside of a macro, which would take Stopped for a failure.
        const bool is_laid = variable.Put(0, variable.TakeBlock(), 0, 1, column).ok() &&
                             variable.Lay(slot, 1, 2, &extents).ok();
        CHECK(is_laid);
      });
    }
  }
  SECTION("in place") {
    const RowLayout layout{{DType::kUint8, {kUnknownSize, 2}}, {kBytes / 2, 2}, true, "ab"};
    const std::vector<int64_t> dims = {kBytes / 4, 2};
    const std::string values(kBytes / 2, 'n');
    const RowBytes row{reinterpret_cast<const uint8_t*>(values.data()), values.size()};
    const std::unique_ptr<uint8_t[]> memory(new uint8_t[kBytes]);
    test::CheckStopsSoon([&] {
      const bool is_laid =
          PadRows("x", layout, {nullptr, 0, &row, dims.data()}, 1, memory.get()).ok();
      CHECK(is_laid);
    });
  }
}

TEST_CASE("rows in place are filled up to a fixed shape") {
  const RowLayout layout{{DType::kInt16, {kUnknownSize, 2}}, {3, 3}, true, "ab"};
  const std::vector<int64_t> dims = {2, 2, 0, 2, 4, 2};
  const std::string values = "11223344";
  const auto* data = reinterpret_cast<const uint8_t*>(values.data());
  const RowBytes rows[] = {{data, 8}, {data, 0}, {data, 0}};
  const Column column{nullptr, 0, rows, dims.data()};
  std::string out(36, '?');
  REQUIRE(PadRows("x", layout, column, 2, reinterpret_cast<uint8_t*>(out.data())).ok());
  CHECK(out == "1122ab3344ababababababababababababab");
  const RowStatus status =
      PadRows("x", layout, column, 3, reinterpret_cast<uint8_t*>(std::string(54, '?').data()));
  CHECK(status.row == 2);
  CHECK(status.status.message() ==
        "feature \"x\": larger than what it is to be padded to: (4, 2) > (3, 3)");
}

}  // namespace
}  // namespace penstock
