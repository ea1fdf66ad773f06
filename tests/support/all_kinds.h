// A ring with a tensor of every kind, whose content is counted from the step, so that every client
// can be compared with known bytes. tests/client/kinds_test.py says the same in Python.
//
//   x       float32  (rows, 2)          fixed: 10 step + row + 100 column
//   half    bfloat16 (rows)             fixed: the bits 0x3f80 + row, from 1.0 on
//   id      uint64   ()                 fixed: step
//   name    string   (rows)             "step/row" row times
//   note    string   ()                 "note step"
//   words   string   (rows, ?)          step % 3 columns, "w" and the element's number
//   crop    uint8    (rows, ?, 3)       1 + step % 4 columns, (step + the element's number) % 251
//   ids     int64    (rows, [..])       ragged; row has (step + row) % 4 values, from 100 step on
//   boxes   float32  (rows, [..], 2)    ragged; row has row % 3 boxes, counted from step
//   tokens  int32    (rows, [..], [..]) ragged; row has row % 3 sentences, sentence i of all has
//                                       i % 2 + 1 tokens, counted from step
//   tags    string   (rows, [..])       ragged; row has (step + row) % 3 tags, "t" and their number
//   paths   string   (rows, [..], [..]) ragged; splits as those of tokens, "p" and their number
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "ring/layout.h"
#include "ring/writer.h"
#include "tests/support/variable_slot.h"

namespace penstock {

inline constexpr uint64_t kAllKindsVariableBytes = 64 << 10;

inline ring::SegmentOptions AllKindsRing(int64_t rows) {
  using ring::TensorDType;
  using ring::TensorKind;
  const auto code = [](TensorDType dtype) { return static_cast<uint8_t>(dtype); };
  const uint8_t string = code(TensorDType::kString);
  ring::SegmentOptions options;
  options.pipeline = "kinds";
  options.variable_bytes = kAllKindsVariableBytes;
  options.tensors = {
      {"x", code(TensorDType::kFloat32), true, {rows, 2}},
      {"half", code(TensorDType::kBfloat16), true, {rows}},
      {"id", code(TensorDType::kUint64), false, {}},
      {"name", string, true, {rows}, TensorKind::kString},
      {"note", string, false, {}, TensorKind::kString},
      {"words", string, true, {rows, -1}, TensorKind::kString},
      {"crop", code(TensorDType::kUint8), true, {rows, -1, 3}},
      {"ids", code(TensorDType::kInt64), true, {rows, -1}, TensorKind::kRagged, 1},
      {"boxes", code(TensorDType::kFloat32), true, {rows, -1, 2}, TensorKind::kRagged, 1},
      {"tokens", code(TensorDType::kInt32), true, {rows, -1, -1}, TensorKind::kRagged, 2},
      {"tags", string, true, {rows, -1}, TensorKind::kRagged, 1},
      {"paths", string, true, {rows, -1, -1}, TensorKind::kRagged, 2},
  };
  return options;
}

// Row splits of `rows` rows, row i of which has length(i) elements.
template <typename Length>
std::vector<int64_t> Splits(int64_t rows, const Length& length) {
  std::vector<int64_t> splits = {0};
  for (int64_t i = 0; i < rows; ++i) splits.push_back(splits.back() + length(i));
  return splits;
}

template <typename T>
std::vector<T> Counted(int64_t count, int64_t from) {
  std::vector<T> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), static_cast<T>(from));
  return values;
}

inline std::vector<std::string> CountedStrings(int64_t count, const std::string& prefix) {
  std::vector<std::string> strings;
  for (int64_t i = 0; i < count; ++i) strings.push_back(prefix + std::to_string(i));
  return strings;
}

// Fills a claimed slot with `rows` rows and publishes it.
inline void PublishAllKinds(ring::Writer* writer, int slot, uint64_t step, uint32_t rows,
                            std::optional<uint32_t> valid_rows = std::nullopt) {
  auto* x = reinterpret_cast<float*>(writer->tensor(slot, 0));
  auto* half = reinterpret_cast<uint16_t*>(writer->tensor(slot, 1));
  *reinterpret_cast<uint64_t*>(writer->tensor(slot, 2)) = step;
  std::vector<std::string> names;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t column = 0; column < 2; ++column) {
      x[row * 2 + column] = static_cast<float>(10 * step + row + 100 * column);
    }
    half[row] = static_cast<uint16_t>(0x3f80 + row);
    names.emplace_back();
    for (uint32_t i = 0; i < row; ++i) {
      names.back() += std::to_string(step) + "/" + std::to_string(row);
    }
  }
  const int64_t start = static_cast<int64_t>(step);
  const int64_t columns = start % 3;
  const int64_t width = 1 + start % 4;
  VariableSlot variable(writer->variable(slot), writer->variable_bytes());
  variable.AddStrings(names);
  variable.AddStrings({"note " + std::to_string(step)});
  variable.AddStrings(CountedStrings(rows * columns, "w"), {{rows, columns}});
  std::vector<uint8_t> crop;
  for (int64_t i = 0; i < rows * width * 3; ++i) {
    crop.push_back(static_cast<uint8_t>((start + i) % 251));
  }
  variable.AddDense(crop, {rows, width, 3});
  const auto ids = Splits(rows, [&](int64_t row) { return (start + row) % 4; });
  variable.AddRagged(Counted<int64_t>(ids.back(), 100 * start), {ids});
  const auto boxes = Splits(rows, [](int64_t row) { return row % 3; });
  variable.AddRagged(Counted<float>(boxes.back() * 2, start), {boxes});
  const auto tokens = Splits(boxes.back(), [](int64_t i) { return i % 2 + 1; });
  variable.AddRagged(Counted<int32_t>(tokens.back(), start), {boxes, tokens});
  const auto tags = Splits(rows, [&](int64_t row) { return (start + row) % 3; });
  variable.AddStrings(CountedStrings(tags.back(), "t"), {tags});
  variable.AddStrings(CountedStrings(tokens.back(), "p"), {boxes, tokens});
  const std::string cursor = "cursor-" + std::to_string(step);
  writer->Publish(slot, {step, step / 10, rows, cursor, variable.extents(), valid_rows});
}

}  // namespace penstock
