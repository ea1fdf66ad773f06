// Element-wise programs at all tail lengths, with pages behind inputs and output that nobody may
// touch, on every instruction set.
#include <cstring>
#include <limits>
#include <random>

#include "server/expr/compile.h"
#include "server/expr/shuffle_pattern.h"
#include "server/kernels/gather.h"
#include "tests/expr/instruction_sets.h"
#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"

namespace penstock::expr {
namespace {

using testing::GuardedMemory;

// Between them: nothing aside, something aside, more than fits aside, every width of memory,
// doubles, choices of both directions, constants that repeat, constants by planes, scalars of a
// row.
constexpr const char* kTexts[] = {
    "x * 2 + 1",
    "(x + 1) * (x - 1) / (x * x + 1)",
    "((x + 1) * (x - 1) + (x * 3 - 1) * (y * 5 + 1)) / ((x + 2) * (y + 3))",
    "where(x > 0, x, x * 0.01)",
    "where(x > y, x * y + 1, y - x * 2)",
    "where((x > 1) == (y < 3), (x + 1) * (y - 1), (x + 2) * (y - 2))",
    "(u + 1.5) * (u - 1.5)",
    "(float64(x) + 1) * (float64(y) - 1)",
    "where(u > 100, float64(x) * 2, float64(y) + 0.5)",
    "uint8(clip(x * 10, 0, 255))",
    "int16(u) * 3 - int16(u) // 2",
    "int64(x) * int64(y) + (int64(u) - 5) * (int64(u) + 5)",
    "clip(x, y * 0.5, y * y)",
    "maximum(x + y, x - y) * s + minimum(x * y, s)",
    "x - s",
    "tanh(x) * (exp(y) + 1)",
    "sin(x) + cos(x * y)",
    "sin(float64(x)) - cos(float64(y))",
    "(x * y - 2) * (u + 1) + (3 - x) * y",
    "2 / (x + 0.5) - (1 - y)",
    "(x / 3) / (y * 0.25) - (u * 2) / (x + y)",
    "(y - 1) - (x + 1)",
    "(x + 1) / (x * y - 2)",
    "(y - 3) * ((x + 2) * 0.25) + (1 - x) * y",
    "(y / 3) - ((x - 2) - s)",
    "(x - y) / y + u",
    "(u - y) * x",
    // Operations that load and store themselves, of eight vectors and of four.
    "x / y",
    "u - y",
    "float64(x) / 3",
    "maximum(x * y, sqrt(y))",
    "y / (x * x + s)",
    "where(y >= x, y, x)",
    "where(x != y, x, y * 2)",
    "where(s <= x, s, x * y)",
    "where(x == 0, y - 1, x)",
    "where(3 > x, x + 1, x * y) * y - 1",
    "x * where(x < y, 0.5, s) + where(x > 1, y, 2)",
    "isnan(x / y) | logical_and(x, y)",
};

TEST_CASE("A program reads and writes its columns and nothing else, at every length") {
  std::mt19937 random(17);
  const std::vector<InstructionSet> sets = InstructionSets();
  // Two short steps and one wide one of the widest set, and what a row takes to be computed by
  // itself.
  std::vector<int64_t> lengths;
  for (int64_t n = 1; n <= 150; n += n < 40 ? 1 : 7) lengths.push_back(n);
  for (const int64_t n : {255, 256, 257, 300}) lengths.push_back(n);
  for (const char* const text : kTexts) {
    for (const int64_t n : lengths) {
      const auto count = static_cast<size_t>(n);
      const Signature inputs = {{"x", {DType::kFloat32, {n}}},
                                {"y", {DType::kFloat32, {n}}},
                                {"u", {DType::kUint8, {n}}},
                                {"s", {DType::kFloat32, {}}}};
      const GuardedMemory x(count * 4), y(count * 4), u(count), s(4);
      for (size_t i = 0; i < count; ++i) {
        x.As<float>()[i] = static_cast<float>(random() % 400) / 16 - 12;
        y.As<float>()[i] = static_cast<float>(random() % 400) / 16 - 12;
        u.data()[i] = static_cast<uint8_t>(random());
      }
      *s.As<float>() = 1.75f;
      const Column columns[] = {{x.data(), count * 4, nullptr},
                                {y.data(), count * 4, nullptr},
                                {u.data(), count, nullptr},
                                {s.data(), 4, nullptr}};
      MapSource map;
      map.stage = "map";
      map.outs = {std::string("z = ") + text};
      std::vector<uint8_t> reference;
      for (const InstructionSet& set : sets) {
        const ScopedInstructionSet scoped(set);
        CAPTURE(text, n, set.name);
        const auto program = CompileFor(inputs, {map}, set.lanes);
        INFO(program.status().ToString());
        REQUIRE(program.ok());
        const size_t bytes = *NumBytes((*program)->output()[0].type);
        const GuardedMemory out(bytes);
        uint8_t* const outs[] = {out.data()};
        Arena arena;
        REQUIRE((*program)->Run(1, columns, outs, arena).ok());
        if (reference.empty()) reference.assign(out.data(), out.data() + bytes);
        REQUIRE(std::memcmp(reference.data(), out.data(), bytes) == 0);
      }
    }
  }
}

TEST_CASE("A choice by a comparison chooses what the same choice by flags does") {
  constexpr int64_t kCount = 300;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const float values[] = {-1, -0.0f, 0, 1, 2, kNan, std::numeric_limits<float>::infinity()};
  const Signature inputs = {{"x", {DType::kFloat32, {kCount}}}, {"y", {DType::kFloat32, {kCount}}}};
  std::vector<float> x(kCount + 16), y(kCount + 16);
  for (int64_t i = 0; i < kCount; ++i) {
    x[i] = values[i % 7];
    y[i] = values[i / 7 % 7];
  }
  const Column columns[] = {{reinterpret_cast<uint8_t*>(x.data()), kCount * 4, nullptr},
                            {reinterpret_cast<uint8_t*>(y.data()), kCount * 4, nullptr}};
  for (const InstructionSet& set : InstructionSets()) {
    const ScopedInstructionSet scoped(set);
    for (const std::string order : {"==", "!=", "<", "<=", ">", ">="}) {
      for (const std::string chosen : {"x, x * 2 + 3", "x * 2 + 3, x", "y + 5, x * 2 + 3"}) {
        for (const std::string second : {"y", "1"}) {
          const std::string condition = "x " + order + " " + second;
          // In programs of their own: what two outputs share would be a column of flags.
          const auto run = [&](const std::string& text) {
            MapSource map;
            map.stage = "map";
            map.outs = {"z = where(" + text + ", " + chosen + ")"};
            CAPTURE(set.name, map.outs);
            const auto program = CompileFor(inputs, {map}, set.lanes);
            INFO(program.status().ToString());
            REQUIRE(program.ok());
            std::vector<float> out(kCount + 16);
            uint8_t* const outs[] = {reinterpret_cast<uint8_t*>(out.data())};
            Arena arena;
            REQUIRE((*program)->Run(1, columns, outs, arena).ok());
            return out;
          };
          const std::vector<float> direct = run(condition);
          const std::vector<float> flags =
              run("logical_and(" + condition + ", x == x) | (" + condition + ")");
          CAPTURE(set.name, condition, chosen);
          REQUIRE(std::memcmp(direct.data(), flags.data(), kCount * 4) == 0);
        }
      }
    }
  }
}

TEST_CASE("What two values at once are needed for is computed without tiles") {
  const Signature inputs = {{"x", {DType::kFloat32, {4096}}}};
  for (const char* const text : {"(x + 1) * (x - 1) / (x * x + 1)", "where(x > 0, x, x * 0.01)"}) {
    MapSource map;
    map.stage = "map";
    map.outs = {std::string("z = ") + text};
    const auto program = Compile(inputs, {&map, 1});
    REQUIRE(program.ok());
    CAPTURE((*program)->DebugString());
    CHECK((*program)->DebugString().find(" 0 tiles") != std::string::npos);
  }
}

TEST_CASE("Deep sums of shared values are compiled in time that grows with their number") {
  const Signature inputs = {{"x", {DType::kFloat32, {8}}}};
  MapSource map;
  map.stage = "map";
  map.lets = {"v0 = x * 0.5 + 1"};
  for (int i = 1; i < 60; ++i) {
    const std::string before = "v" + std::to_string(i - 1);
    map.lets.push_back("v" + std::to_string(i) + " = " + before + " - " + before + " * 0.5");
  }
  map.outs = {"y = v59"};
  REQUIRE(Compile(inputs, {&map, 1}).ok());
}

TEST_CASE("Deep sums of shared bits, and of what is rearranged, are compiled in such time too") {
  Signature inputs = {{"x", {DType::kUint8, {8}}}};
  MapSource map;
  map.stage = "map";
  SECTION("bits") {
    map.lets = {"v0 = float32(unpack_bits(x))"};
    map.outs = {"y = v59"};
  }
  SECTION("rearranged") {
    map.lets = {"v0 = float32(x) / 255"};
    map.outs = {"y = v59[::-1]"};
  }
  for (int i = 1; i < 60; ++i) {
    const std::string before = "v" + std::to_string(i - 1);
    map.lets.push_back("v" + std::to_string(i) + " = " + before + " - " + before + " * 0.5");
  }
  REQUIRE(Compile(inputs, {&map, 1}).ok());
  if (map.outs[0] != "y = v59") {
    for (std::string& let : map.lets) {
      if (const size_t at = let.find(" * 0.5"); at != std::string::npos) let.erase(at);
      if (const size_t at = let.find(" - "); at != std::string::npos) let.replace(at, 3, " * ");
    }
    REQUIRE(Compile(inputs, {&map, 1}).ok());
  }
}

TEST_CASE("Planes of pixels: constants by runs, and elements moved while they are narrow") {
  constexpr int64_t kSide = 20;
  const Signature inputs = {{"image", {DType::kUint8, {kSide, kSide, 3}}}};
  constexpr size_t kValues = kSide * kSide * 3;
  const GuardedMemory image(2 * kValues);
  for (size_t i = 0; i < 2 * kValues; ++i) image.data()[i] = static_cast<uint8_t>(i * 37 + i / 100);
  MapSource map;
  map.stage = "map";
  map.constants = {{"MEAN", DType::kFloat32, true, {3}, {123.675, 116.28, 103.53}, {}},
                   {"STD", DType::kFloat32, true, {3}, {58.395, 57.12, 57.375}, {}}};
  map.outs = {"y = transpose((image - MEAN) / STD, [2, 0, 1])"};
  for (const InstructionSet& set : InstructionSets()) {
    const ScopedInstructionSet scoped(set);
    CAPTURE(set.name);
    const auto program = CompileFor(inputs, {map}, set.lanes);
    INFO(program.status().ToString());
    REQUIRE(program.ok());
    CAPTURE((*program)->DebugString());
    CHECK((*program)->DebugString().find("transpose uint8") == 0);
    CHECK((*program)->DebugString().find("runs of 400") != std::string::npos);
    const GuardedMemory out(2 * kValues * sizeof(float));
    const Column columns[] = {{image.data(), kValues, nullptr}};
    uint8_t* const outs[] = {out.data()};
    Arena arena;
    REQUIRE((*program)->Run(2, columns, outs, arena).ok());
    const float mean[] = {123.675f, 116.28f, 103.53f}, deviation[] = {58.395f, 57.12f, 57.375f};
    bool same = true;
    for (size_t i = 0; i < 2 * kValues; ++i) {
      const size_t row = i / kValues, plane = i % kValues / (kSide * kSide),
                   pixel = i % (kSide * kSide);
      const auto value = static_cast<float>(image.data()[row * kValues + pixel * 3 + plane]);
      same &= out.As<float>()[i] == (value - mean[plane]) / deviation[plane];
    }
    CHECK(same);
  }
}

TEST_CASE("A gather by vectors takes the elements it is told, and reads no further than its row") {
  std::mt19937 random(5);
  int found = 0;
  const auto check = [&](const std::vector<int32_t>& source, size_t size, size_t in_elements) {
    const auto pattern = ShufflePattern::Make(source, size, in_elements);
    if (pattern == nullptr) return;
    ++found;
    const GuardedMemory in(in_elements * size), out(pattern->elements() * size);
    for (size_t i = 0; i < in_elements * size; ++i) in.data()[i] = static_cast<uint8_t>(random());
    pattern->Run(in.data(), out.data());
    std::vector<uint8_t> want(source.size() * size);
    kernels::Gather(in.data(), source.data(), source.size(), size, want.data());
    REQUIRE(source.size() - pattern->elements() < 16 / size);
    REQUIRE(std::memcmp(out.data(), want.data(), pattern->elements() * size) == 0);
  };
  for (const size_t size : {1, 2, 4, 8}) {
    for (int32_t n = 1; n <= 70; ++n) {
      CAPTURE(size, n);
      std::vector<int32_t> mirrored, turned, strided, scattered;
      for (int32_t i = 0; i < n; ++i) {
        mirrored.push_back(n - 1 - i);
        strided.push_back(i * 3 + 1);
        scattered.push_back(static_cast<int32_t>(random() % 40));
        for (int32_t c = 0; c < 3; ++c) turned.push_back(3 * i + 2 - c);
      }
      check(mirrored, size, static_cast<size_t>(n));
      check(turned, size, static_cast<size_t>(3 * n));
      check(strided, size, static_cast<size_t>(3 * n));
      check(scattered, size, 40);
    }
  }
  CHECK(found > 300);
}

}  // namespace
}  // namespace penstock::expr
