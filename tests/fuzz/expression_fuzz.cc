// Any text as an expression: it is refused with a message, or compiled to a program whose vectors
// give the bytes of its scalar twin.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/row_identity.h"
#include "server/expr/compile.h"

namespace {

using namespace penstock;  // NOLINT: a program of one function

constexpr int kRows = 3;
constexpr size_t kRowBytesMax = size_t{1} << 16;

const Signature& Inputs() {
  static const Signature inputs = {{"image", {DType::kUint8, {4, 5, 3}}},
                                   {"x", {DType::kFloat32, {300}}},
                                   {"d", {DType::kFloat64, {7}}},
                                   {"i", {DType::kInt64, {7}}},
                                   {"b", {DType::kBool, {7}}},
                                   {"s", {DType::kFloat32, {}}},
                                   {"bytes", {DType::kUint8, {24}}},
                                   {"h", {DType::kInt16, {7}}}};
  return inputs;
}

// A number of five digits or more may ask for more memory than is worth to try.
bool HasLargeNumber(const std::string& text) {
  int digits = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 4) return true;
  }
  return text.find("**") != std::string::npos || text.find("power") != std::string::npos;
}

std::vector<uint8_t> Run(const expr::Program& program, bool& failed) {
  std::vector<std::vector<uint8_t>> memory;
  std::vector<Column> columns;
  uint32_t state = 1;
  for (const Feature& feature : Inputs()) {
    const auto bytes = static_cast<size_t>(*NumBytes(feature.type));
    memory.emplace_back(bytes * kRows + 64);
    for (uint8_t& byte : memory.back()) {
      state = state * 1664525 + 1013904223;
      byte = feature.type.dtype == DType::kBool ? state >> 31 : static_cast<uint8_t>(state >> 24);
    }
    columns.push_back({memory.back().data(), bytes, nullptr});
  }
  const RowIdentity identities[kRows] = {{1, nullptr}, {2, nullptr}, {3, nullptr}};
  if (program.draws()) {
    columns.push_back({const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(identities)),
                       sizeof(RowIdentity), nullptr});
  }
  const size_t bytes = static_cast<size_t>(*NumBytes(program.output()[0].type));
  std::vector<uint8_t> out(bytes * kRows + 64, 0xA5);
  uint8_t* const outs[] = {out.data()};
  Arena arena;
  failed = !program.Run(kRows, columns, outs, arena).ok();
  if (failed) return {};
  for (size_t i = bytes * kRows; i < out.size(); ++i) {
    if (out[i] != 0xA5) std::abort();
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (HasLargeNumber(text)) return 0;
  expr::MapSource map;
  map.stage = "map";
  map.outs = {"y = " + text};
  const auto vectors = expr::CompileFor(Inputs(), {&map, 1}, expr::Lanes::kVector);
  const auto twin = expr::CompileFor(Inputs(), {&map, 1}, expr::Lanes::kScalar);
  if (vectors.ok() != twin.ok()) std::abort();
  if (!vectors.ok()) {
    if (vectors.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
    return 0;
  }
  const auto bytes = NumBytes((*vectors)->output()[0].type);
  if (!bytes || static_cast<size_t>(*bytes) > kRowBytesMax) return 0;
  bool failed = false, twin_failed = false;
  const std::vector<uint8_t> ours = Run(**vectors, failed);
  const std::vector<uint8_t> theirs = Run(**twin, twin_failed);
  if (failed != twin_failed || ours != theirs) std::abort();
  return 0;
}
