// Runs a map whose functions draw, over rows of given identities, and collects the values of one
// output.
//
// Threads:  one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/row_identity.h"
#include "base/row_shape.h"
#include "server/expr/compile.h"
#include "server/expr/program.h"
#include "tests/support/catch.h"

namespace penstock::testing {

// The feature "image": uint8, the same for all rows.
struct TestImage {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;  // of three channels

  TestImage(int64_t rows, int64_t columns) : height(rows), width(columns) {
    uint32_t state = 1;
    for (int64_t i = 0; i < rows * columns * 3; ++i) {
      state = state * 1664525 + 1013904223;
      pixels.push_back(static_cast<uint8_t>(state >> 24));
    }
  }
};

struct DrawnRows {
  TensorType type;                         // of one row, with sizes known
  std::vector<std::vector<uint8_t>> rows;  // the bytes of each
  DrawLog log;

  template <typename T>
  std::vector<T> As() const {
    std::vector<T> values;
    for (const std::vector<uint8_t>& row : rows) {
      const T* const begin = reinterpret_cast<const T*>(row.data());
      values.insert(values.end(), begin, begin + row.size() / sizeof(T));
    }
    return values;
  }
};

inline absl::StatusOr<std::unique_ptr<expr::Program>> CompileDrawing(
    const std::vector<std::string>& texts, const std::string& stage = "map",
    const TestImage& image = TestImage(8, 10), expr::Lanes lanes = expr::Lanes::kVector,
    bool known_sizes = true) {
  expr::MapSource map;
  map.stage = stage;
  map.outs = texts;
  Shape shape = {image.height, image.width, 3};
  if (!known_sizes) shape = {kUnknownSize, kUnknownSize, 3};
  const Signature signature = {{"image", {DType::kUint8, shape}}};
  return expr::CompileFor(signature, {&map, 1}, lanes);
}

// The first output of a program over rows of these paths, `block` at a time.
inline DrawnRows RunDrawing(const expr::Program& program, const std::vector<uint64_t>& paths,
                            size_t block, const TestImage& image = TestImage(8, 10),
                            bool logged = false) {
  DrawnRows result;
  result.type = program.output()[0].type;
  std::vector<uint8_t> pixels = image.pixels;
  pixels.resize(pixels.size() + 64);
  const int64_t dims_of_one[] = {image.height, image.width, 3};
  for (size_t first = 0; first < paths.size(); first += block) {
    const size_t count = std::min(block, paths.size() - first);
    Arena arena;
    std::vector<RowIdentity> identities;
    for (size_t i = 0; i < count; ++i)
      identities.push_back({paths[first + i], logged ? &result.log : nullptr});
    const std::vector<RowBytes> rows(count, {pixels.data(), image.pixels.size()});
    std::vector<int64_t> dims;
    for (size_t i = 0; i < count; ++i)
      dims.insert(dims.end(), std::begin(dims_of_one), std::end(dims_of_one));
    std::vector<Column> in = {{nullptr, 0, rows.data(), dims.data()}};
    if (program.draws()) {
      in.push_back({reinterpret_cast<uint8_t*>(identities.data()), sizeof(RowIdentity)});
    }
    std::vector<Column> out(program.output().size());
    std::vector<std::vector<uint8_t>> memory(out.size());
    for (size_t i = 0; i < out.size(); ++i) {
      const auto bytes = NumBytes(program.output()[i].type);
      if (!bytes) continue;
      memory[i].resize(*bytes * count + 64);
      out[i] = {memory[i].data(), static_cast<size_t>(*bytes)};
    }
    const RowStatus status = program.Run(static_cast<int>(count), in, absl::MakeSpan(out), arena);
    INFO(status.status.ToString());
    REQUIRE(status.ok());
    for (size_t i = 0; i < count; ++i) {
      const uint8_t* const row = out[0].row(i);
      result.rows.emplace_back(row, row + out[0].row_size(i));
      if (out[0].dims != nullptr) result.type.shape = RowDims(result.type, out[0], i);
    }
  }
  return result;
}

// The same of one text.
inline DrawnRows Draw(const std::string& text, const std::vector<uint64_t>& paths,
                      size_t block = 16, const std::string& stage = "map") {
  const auto program = CompileDrawing({"y = " + text}, stage);
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  return RunDrawing(**program, paths, block);
}

// n different paths.
inline std::vector<uint64_t> Paths(size_t n) {
  std::vector<uint64_t> paths;
  for (size_t i = 0; i < n; ++i) paths.push_back(MixPath(7, i));
  return paths;
}

}  // namespace penstock::testing
