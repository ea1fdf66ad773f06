// Any texts in the functions of strings: an error of their row, or the same numbers from vectors
// and from their scalar twin, in a block and alone, whatever lies behind the texts in memory. The
// first byte chooses the function, the second one cuts the rest into rows. Fault 21c.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "server/expr/compile.h"

namespace {

using namespace penstock;  // NOLINT: a program of one function

// Texts become numbers by their hashes; those that give 1 in front must hold.
const char* const kExpressions[] = {
    "hash(x)",
    "hash(decode_base64(x))",
    "int64(decode_base64(encode_base64(x)) == x)",
    "int64(decode_base64(encode_base64(x, pad=True)) == x)",
    "hash(string_split(x))",
    "hash(string_split(x, \",\"))",
    "hash(string_split(x, \"ab\", maxsplit=2))",
    "hash(string_strip(x) + string_lower(x))",
    "hash(string_upper(string_split(x, \",\")) + x)",
    "hash(substr(x, 3, 5))",
    "hash(substr(x, -3, 5, unit=\"UTF8_CHAR\"))",
    "hash(unicode_split(x))",
    "hash(unicode_split(x, errors=\"ignore\"))",
    "sum(unicode_decode(x, errors=\"strict\"))",
    "sum(unicode_decode(x)) * 1000 + string_length(x, unit=\"UTF8_CHAR\")",
    "string_to_number(x, \"int32\")",
    "string_to_number(x, \"float64\")",
    "string_lookup(x, \"a\nbb\nccc\", default=-1)",
    "int64(regex_full_match(x, \"(a|b)*[^c]?.\"))",
    "hash(regex_replace(x, \"[a-c]*\", \"<\\\\0>\"))",
    "sum(decode_raw(x, \"int16\"))",
    "sum(decode_raw(x, \"float32\", little_endian=False, fixed_length=8))",
    "hash(decode_csv(x, 0, 1, \"string\"))",
    "sum(string_to_number(string_split(x, \" \"), \"uint64\"))",
    "sum(parse_tensor(x, \"int64\", [-1, 2]))",
    "hash(decode_compressed(x, \"GZIP\"))",
    "hash(decode_json_example(x))",
    "sum(image_shape(x))",
    "hash(string_split(x, \"/\")[-2])",
};

struct Programs {
  std::unique_ptr<expr::Program> vectors, twin;
  bool must_hold = false;
};

std::string WithHash(std::string text) {
  if (text.rfind("hash(", 0) != 0) return "float64(" + text + ")";
  return "float64(sum(string_to_hash_bucket_fast(" + text.substr(5, text.size() - 6) +
         ", 1000003)))";
}

const std::vector<Programs>& AllPrograms() {
  static const std::vector<Programs> all = [] {
    std::vector<Programs> made;
    for (const std::string text : kExpressions) {
      expr::MapSource map;
      map.stage = "map";
      map.outs = {"y = " + WithHash(text)};
      const Signature inputs = {{"x", {DType::kString, {}}}};
      auto vectors = expr::CompileFor(inputs, {&map, 1}, expr::Lanes::kVector);
      auto twin = expr::CompileFor(inputs, {&map, 1}, expr::Lanes::kScalar);
      if (!vectors.ok() || !twin.ok()) {
        fprintf(stderr, "%s: %s\n", text.c_str(), vectors.status().ToString().c_str());
        std::abort();
      }
      made.push_back(
          {*std::move(vectors), *std::move(twin), text.find("== x)") + 5 == text.size()});
    }
    return made;
  }();
  return all;
}

struct Result {
  std::vector<double> values;
  int failed = -1;  // row
};

// `behind`: what lies behind each text.
Result Run(const expr::Program& program, const std::vector<std::string>& texts, char behind) {
  std::vector<std::string> memory = texts;
  std::vector<RowBytes> rows;
  for (std::string& text : memory) {
    const size_t size = text.size();
    text.append(64, behind);
    rows.push_back({reinterpret_cast<const uint8_t*>(text.data()), size});
  }
  constexpr double kGuard = -7;
  std::vector<double> out(rows.size() + 16, kGuard);
  const Column in[] = {{nullptr, 0, rows.data()}};
  uint8_t* const outs[] = {reinterpret_cast<uint8_t*>(out.data())};
  Arena arena;
  const RowStatus status = program.Run(static_cast<int>(rows.size()), in, outs, arena);
  for (size_t i = rows.size() + 8; i < out.size(); ++i) {
    if (out[i] != kGuard) std::abort();
  }
  if (!status.ok()) return {{}, status.row};
  out.resize(rows.size());
  return {out, -1};
}

bool Same(const Result& a, const Result& b) {
  return a.failed == b.failed && a.values.size() == b.values.size() &&
         (a.failed >= 0 ||
          std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(double)) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Programs& programs = AllPrograms()[data[0] % AllPrograms().size()];
  const std::string rest(reinterpret_cast<const char*>(data + 2), size - 2);
  const size_t cut = std::min<size_t>(data[1], rest.size());
  const std::vector<std::string> texts = {rest.substr(cut), rest.substr(0, cut), rest};
  const Result block = Run(*programs.vectors, texts, 'a');
  if (!Same(block, Run(*programs.twin, texts, '\xbf'))) std::abort();
  for (size_t i = 0; i < texts.size(); ++i) {
    const Result alone = Run(*programs.vectors, {texts[i]}, ',');
    if (programs.must_hold && (alone.failed >= 0 || alone.values[0] != 1)) std::abort();
    // The lowest failing row is the block's.
    if (alone.failed >= 0) {
      if (block.failed != static_cast<int>(i)) std::abort();
      return 0;
    }
    if (block.failed < 0 && std::memcmp(&alone.values[0], &block.values[i], sizeof(double)) != 0)
      std::abort();
  }
  if (block.failed >= 0) std::abort();
  return 0;
}
