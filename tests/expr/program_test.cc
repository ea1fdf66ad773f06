// Programs as a whole: the pipelines' maps, chains, row kernels, and equal bytes however the rows
// are cut and on whatever instruction set.
#include <cmath>
#include <cstring>
#include <random>

#include "server/expr/compile.h"
#include "server/expr/function.h"
#include "server/kernels/bit_select.h"
#include "tests/expr/instruction_sets.h"
#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

constexpr int kRows = 64;

// Input columns of random bytes; scattered or dense by the column's number.
struct Data {
  Data(const Signature& signature, uint64_t seed)
      : bytes(signature.size()), rows(signature.size()) {
    std::mt19937_64 random(seed);
    for (size_t i = 0; i < signature.size(); ++i) {
      const size_t row_bytes = *NumBytes(signature[i].type);
      const size_t stride = i % 2 == 0 ? row_bytes : row_bytes + 3;
      bytes[i].resize(kRows * stride + 64);
      const DType dtype = signature[i].type.dtype;
      for (int r = 0; r < kRows; ++r) {
        uint8_t* row = bytes[i].data() + r * stride;
        for (size_t j = 0; j < row_bytes; j += DTypeSize(dtype)) {
          // Small numbers of both signs keep most expressions finite.
          const auto number = static_cast<int64_t>(random() % 400) - 200;
          Put(dtype, row + j, number, static_cast<double>(number) / 16);
        }
        rows[i].push_back({row, row_bytes});
      }
      sizes.push_back(row_bytes);
      scattered.push_back(i % 2 == 1);
    }
  }

  static void Put(DType dtype, uint8_t* to, int64_t integer, double number) {
    const auto floating = static_cast<float>(number);
    if (dtype == DType::kFloat32) {
      std::memcpy(to, &floating, 4);
    } else if (dtype == DType::kFloat64) {
      std::memcpy(to, &number, 8);
    } else {
      std::memcpy(to, &integer, DTypeSize(dtype));
    }
  }

  std::vector<Column> From(int first) const {
    std::vector<Column> columns;
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (scattered[i]) {
        columns.push_back({nullptr, 0, rows[i].data() + first});
      } else {
        columns.push_back(
            {const_cast<uint8_t*>(bytes[i].data()) + first * sizes[i], sizes[i], nullptr});
      }
    }
    return columns;
  }

  std::vector<std::vector<uint8_t>> bytes;
  std::vector<std::vector<RowBytes>> rows;
  std::vector<size_t> sizes;
  std::vector<bool> scattered;
};

// All outputs of kRows rows, computed `block` rows at a time.
std::vector<uint8_t> RunAll(const Program& program, const Data& data, int block) {
  std::vector<std::vector<uint8_t>> outputs;
  std::vector<size_t> sizes;
  for (const Feature& feature : program.output()) {
    sizes.push_back(*NumBytes(feature.type));
    outputs.emplace_back(kRows * sizes.back() + 64, 0xCD);
  }
  Arena arena;
  // Backwards: a block must not write into the rows behind it, which are done already.
  for (int first = (kRows - 1) / block * block; first >= 0; first -= block) {
    std::vector<uint8_t*> out;
    for (size_t i = 0; i < outputs.size(); ++i) out.push_back(outputs[i].data() + first * sizes[i]);
    const RowStatus status =
        program.Run(std::min(block, kRows - first), data.From(first), out, arena);
    REQUIRE(status.ok());
    arena.Reset();
  }
  std::vector<uint8_t> all;
  for (const auto& output : outputs) {
    REQUIRE(output[output.size() - 64] == 0xCD);
    all.insert(all.end(), output.begin(), output.end() - 64);
  }
  return all;
}

MapSource Map(std::vector<std::string> lets, std::vector<std::string> outs) {
  MapSource map;
  map.stage = "map";
  map.lets = std::move(lets);
  map.outs = std::move(outs);
  return map;
}

constexpr int kChannels[24] = {0, 4, 8,  12, 16, 20, 1, 5, 9,  13, 17, 21,
                               2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23};

MapSource Chess(const std::string& type) {
  std::string channels;
  for (const int channel : kChannels) channels += std::to_string(channel) + ",";
  MapSource map =
      Map({"bits = unpack_bits(d)",
           "planes = reshape(int8(bits[:1536]), [8, 8, 24])[..., [" + channels + "]]",
           "mate = " + type + "(bits[1546])", "v = " + type + "(s)"},
          {"board = " + type + "(planes * SIGN)", "flags = " + type + "(bits[1536:1546])",
           "score = (1 - mate)*A*tanh(v/K) + mate*sign(v)*(A + (1 - A)/(B - 1)*maximum(0, B - "
           "abs(v)))"});
  map.constants = {{"A", DType::kInvalid, false, {}, {0.9}, {}},
                   {"K", DType::kInvalid, false, {}, {400}, {}},
                   {"B", DType::kInvalid, false, {}, {50}, {}}};
  NamedConstant sign{"SIGN", DType::kInt8, false, {}, {}, {}};
  for (int i = 0; i < 24; ++i) sign.int_values.push_back(i % 12 < 6 ? 1 : -1);
  map.constants.push_back(sign);
  return map;
}

template <typename T>
void CheckChess(const std::string& type, double tolerance) {
  const Signature inputs = {{"s", {DType::kInt64, {}}}, {"d", {DType::kUint8, {194}}}};
  const Data data(inputs, 1);
  const InstructionSet set = GENERATE(from_range(InstructionSets()));
  const ScopedInstructionSet scoped(set);
  CAPTURE(set.name);
  auto program = CompileFor(inputs, {Chess(type)}, set.lanes);
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  // The planes must not be computed as columns.
  CHECK_THAT((*program)->DebugString(),
             Catch::Matchers::StartsWith("bit_select " + type + " (8, 8, 24)"));
  const int block = GENERATE(1, 7, 32, 64);
  const std::vector<uint8_t> bytes = RunAll(**program, data, block);
  const T* board = reinterpret_cast<const T*>(bytes.data());
  const T* flags = board + kRows * 1536;
  const T* score = flags + kRows * 10;
  for (int r = 0; r < kRows; ++r) {
    const uint8_t* row = data.rows[1][r].data;
    const auto bit = [&](int i) { return row[i / 8] >> (7 - i % 8) & 1; };
    for (int i = 0; i < 1536; ++i) {
      const T want = static_cast<T>(bit(i / 24 * 24 + kChannels[i % 24]) * (i % 12 < 6 ? 1 : -1));
      // Compared as bytes: no -0.0 may appear.
      REQUIRE(std::memcmp(&board[r * 1536 + i], &want, sizeof(T)) == 0);
    }
    for (int i = 0; i < 10; ++i) REQUIRE(flags[r * 10 + i] == static_cast<T>(bit(1536 + i)));
    int64_t s;
    std::memcpy(&s, data.rows[0][r].data, 8);
    const double mate = bit(1546);
    const double v = static_cast<double>(s);
    const double want =
        (1 - mate) * 0.9 * std::tanh(v / 400) +
        mate * ((v > 0) - (v < 0)) * (0.9 + (1 - 0.9) / 49 * std::max(0.0, 50 - std::fabs(v)));
    REQUIRE(std::fabs(static_cast<double>(score[r]) - want) <= tolerance);
  }
}

TEST_CASE("The chess map in float32") { CheckChess<float>("float32", 5e-7); }
TEST_CASE("The chess map in float64") { CheckChess<double>("float64", 1e-12); }

TEST_CASE("A chain of maps is one program") {
  const Signature inputs = {{"x", {DType::kUint8, {10}}}, {"y", {DType::kFloat32, {10}}}};
  const Data data(inputs, 2);
  const auto chained = Compile(inputs, {Map({}, {"a = x / 2.0", "y = y", "both = a2"})});
  REQUIRE_FALSE(chained.ok());
  MapSource last = Map({"t = a + b"}, {"r = t * t", "b = b[:, :3]"});
  last.batched = true;
  auto two = Compile(inputs, {Map({}, {"a = x / 2.0", "b = y"}), last});
  INFO(two.status().ToString());
  REQUIRE(two.ok());
  auto one = Compile(inputs, {Map({"t = x / 2.0 + y"}, {"r = t * t", "b = y[:3]"})});
  REQUIRE(one.ok());
  CHECK((*two)->output() == (*one)->output());
  CHECK(RunAll(**two, data, 7) == RunAll(**one, data, 32));
}

// Random expressions over columns of several types.
class Expressions {
 public:
  explicit Expressions(uint64_t seed) : random_(seed) {}

  std::string Make(int depth) {
    static const char* const kLeaves[] = {"a", "b",   "c", "e",    "g",  "h",
                                          "3", "2.5", "C", "bits", "one"};
    static const char* const kUnary[] = {"abs",   "exp",  "tanh",    "log1p", "sqrt",
                                         "floor", "sign", "float32", "int16", "float64",
                                         "uint8", "rint", "int64"};
    static const char* const kBinary[] = {"+", "-", "*", "/", "//", "%", "<", ">="};
    if (depth == 0) return kLeaves[random_() % std::size(kLeaves)];
    switch (random_() % 8) {
      case 0:
      case 1:
        return std::string(kUnary[random_() % std::size(kUnary)]) + "(1.5 * " + Make(depth - 1) +
               ")";
      case 2:
        return "where(" + Make(depth - 1) + " > 1, " + Make(depth - 1) + ", 1.0 * " +
               Make(depth - 1) + ")";
      case 3:
        return "maximum(" + Make(depth - 1) + ", 0.5 * " + Make(depth - 1) + ")";
      case 4:
        return "clip(1.0 * " + Make(depth - 1) + ", -2, " + Make(depth - 1) + ")";
      default:
        return "(1.0 * " + Make(depth - 1) + " " + kBinary[random_() % std::size(kBinary)] + " " +
               Make(depth - 1) + ")";
    }
  }

 private:
  std::mt19937_64 random_;
};

TEST_CASE("Bytes do not depend on the size of blocks or on the instruction set") {
  const Signature inputs = {{"a", {DType::kFloat32, {24}}}, {"b", {DType::kUint8, {24}}},
                            {"c", {DType::kInt16, {24}}},   {"e", {DType::kFloat64, {24}}},
                            {"g", {DType::kInt64, {24}}},   {"d", {DType::kUint8, {3}}},
                            {"h", {DType::kInt32, {24}}},   {"s", {DType::kFloat32, {}}}};
  const Data data(inputs, 3);
  const std::vector<InstructionSet> sets = InstructionSets();
  int compiled = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const std::string text = Expressions(seed).Make(1 + static_cast<int>(seed % 4));
    MapSource map = Map({"bits = float32(unpack_bits(d)) * 2", "one = s"},
                        {"y = " + text, "z = a[::-1] - (" + text + ") * s"});
    NamedConstant c{"C", DType::kFloat32, false, {}, {}, {}};
    for (int i = 0; i < 24; ++i) c.float_values.push_back(i % 3 - 1.25);
    map.constants = {c};
    CAPTURE(seed, text);
    std::vector<uint8_t> reference;
    for (const InstructionSet& set : sets) {
      const ScopedInstructionSet scoped(set);
      CAPTURE(set.name);
      const auto program = CompileFor(inputs, {map}, set.lanes);
      INFO(program.status().ToString());
      REQUIRE(program.ok());
      ++compiled;
      for (const int block : {1, 7, 32, 64}) {
        const std::vector<uint8_t> bytes = RunAll(**program, data, block);
        if (reference.empty()) reference = bytes;
        CAPTURE(block);
        const bool same = bytes == reference;
        REQUIRE(same);
      }
    }
  }
  CHECK(compiled == 150 * static_cast<int>(sets.size()));
}

TEST_CASE("Each forced instruction set is the one that runs") {
  for (const InstructionSet& set : InstructionSets()) {
    const ScopedInstructionSet scoped(set);
    CAPTURE(set.name);
    const size_t bytes = set.target == HWY_AVX3 ? 64 : set.target == HWY_AVX2 ? 32 : 16;
    CHECK(kernels::VectorBytes() == bytes);
    CHECK(kernels::BitSelectVectorBytes() == bytes);
  }
}

}  // namespace
}  // namespace penstock::expr
