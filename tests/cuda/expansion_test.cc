// The kernels' bodies, compiled for the host, beside what `map` gives for the same: equal bytes.
#include "cuda/expansion.h"

#include <cstring>
#include <random>
#include <string>

#include "cuda/normalize_table.h"
#include "server/expr/program.h"
#include "tests/cuda/fake.h"
#include "tests/support/catch.h"

namespace penstock::cuda {
namespace {

using ring::Code;
using ring::Status;
using ring::TensorDType;

// The bytes that an expression gives for rows of `x`.
std::vector<uint8_t> Computed(const std::string& expression, TensorDType dtype,
                              const std::vector<int64_t>& shape, const std::vector<uint8_t>& from) {
  Feature feature;
  feature.name = "x";
  feature.type.dtype = static_cast<DType>(dtype);
  feature.type.shape.assign(shape.begin() + 1, shape.end());
  expr::MapSource map;
  map.stage = "map";
  map.outs = {"y = " + expression};
  const auto program = expr::Compile({feature}, {map});
  INFO(program.status());
  REQUIRE(program.ok());
  const size_t row_bytes = *NumBytes(feature.type);
  const size_t out_bytes = *NumBytes((*program)->output()[0].type);
  std::vector<uint8_t> in = from;
  in.resize(in.size() + 64);
  std::vector<uint8_t> out(shape[0] * out_bytes + 64);
  Arena arena;
  const Column column = {in.data(), row_bytes, nullptr};
  uint8_t* to = out.data();
  REQUIRE((*program)
              ->Run(static_cast<int>(shape[0]), absl::MakeConstSpan(&column, 1),
                    absl::MakeConstSpan(&to, 1), arena)
              .ok());
  out.resize(out.size() - 64);
  return out;
}

// The bytes that the device's path gives: through the launch, with the bodies run by the fake
// driver.
std::vector<uint8_t> Expanded(const Fake& fake, Expansion expansion, TensorDType dtype,
                              const std::vector<int64_t>& shape, std::vector<uint8_t> from) {
  const Status planned = Plan(dtype, shape, &expansion);
  INFO(planned.message);
  REQUIRE(planned.ok());
  const uint8_t image[] = {0};
  std::unique_ptr<Expander> expander;
  REQUIRE(Expander::Create(fake.Open(), image, &expander).ok());
  std::unique_ptr<ReadyExpansion> ready;
  REQUIRE(expander->Prepare(expansion, dtype, shape, &ready).ok());
  std::vector<uint8_t> to(expansion.bytes + 8, 0xCD);
  const Status status = ready->Run(reinterpret_cast<Address>(from.data()),
                                   reinterpret_cast<Address>(to.data()), nullptr);
  INFO(status.message);
  REQUIRE(status.ok());
  // Nothing behind the end.
  CHECK(to[expansion.bytes] == 0xCD);
  to.resize(expansion.bytes);
  return to;
}

std::vector<uint8_t> RandomBytes(size_t count) {
  std::mt19937 random(7);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

struct Type {
  const char* name;
  TensorDType dtype;
};

TEST_CASE("normalize gives the bytes of map") {
  const Fake fake;
  const Type type =
      GENERATE(Type{"float16", TensorDType::kFloat16}, Type{"bfloat16", TensorDType::kBfloat16},
               Type{"float32", TensorDType::kFloat32}, Type{"float64", TensorDType::kFloat64});
  const bool is_double = type.dtype == TensorDType::kFloat64;
  const std::string compute = is_double ? "float64" : "float32";
  const auto constants = [&compute](const char* values) { return compute + "([" + values + "])"; };
  // Widths and heights that items divide and do not, and every value of a byte.
  const std::vector<int64_t> shape =
      GENERATE(std::vector<int64_t>{3, 7, 15, 3}, std::vector<int64_t>{2, 16, 24, 3},
               std::vector<int64_t>{1, 17, 9, 3});
  std::vector<uint8_t> from =
      RandomBytes(static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
  for (int i = 0; i < 256; ++i) from[i] = static_cast<uint8_t>(i);
  Expansion expansion;
  expansion.dtype = type.dtype;
  std::string expression = compute + "(x)";
  SECTION("a cast alone") {}
  SECTION("a scale and a mean") {
    expansion.scale = {127.5};
    expansion.mean = {1};
    expression = compute + "(x) / 127.5 - 1";
  }
  SECTION("three numbers for each channel") {
    expansion.scale = {255};
    expansion.mean = {0.485, 0.456, 0.406};
    expansion.deviation = {0.229, 0.224, 0.225};
    expression = "(" + compute + "(x) / 255 - " + constants("0.485, 0.456, 0.406") + ") / " +
                 constants("0.229, 0.224, 0.225");
    SECTION("channels first") {
      expansion.channels_first = true;
      expression = "transpose(" + expression + ", [2, 0, 1])";
    }
  }
  SECTION("channels first alone") {
    expansion.channels_first = true;
    expression = "transpose(" + expression + ", [2, 0, 1])";
  }
  if (type.dtype != TensorDType::kFloat32 && !is_double) {
    expression = std::string(type.name) + "(" + expression + ")";
  }
  INFO(expression);
  CHECK(Expanded(fake, expansion, TensorDType::kUint8, shape, from) ==
        Computed(expression, TensorDType::kUint8, shape, from));
}

TEST_CASE("normalize takes any number of channels up to its limit") {
  const Fake fake;
  const int64_t channels = GENERATE(1, 2, 3, 4, 16);
  const bool channels_first = GENERATE(false, true);
  // Planes that are many stores, that end within one, and of which several lie in one.
  const int64_t width = GENERATE(1, 6, 13);
  const int64_t height = width == 1 ? 1 : 4 + width % 2;
  const std::vector<int64_t> shape = {7, height, width, channels};
  const std::vector<uint8_t> from = RandomBytes(static_cast<size_t>(7 * height * width * channels));
  Expansion expansion;
  std::string means;
  for (int64_t channel = 0; channel < channels; ++channel) {
    expansion.mean.push_back(static_cast<double>(channel) + 0.25);
    if (channel > 0) means += ", ";
    means += std::to_string(expansion.mean.back());
  }
  expansion.channels_first = channels_first;
  std::string expression = "float32(x) - float32([" + means + "])";
  if (channels_first) expression = "transpose(" + expression + ", [2, 0, 1])";
  CHECK(Expanded(fake, expansion, TensorDType::kUint8, shape, from) ==
        Computed(expression, TensorDType::kUint8, shape, from));
}

// Values that a failed CHECK would print for minutes.
bool Same(const std::vector<uint8_t>& found, const std::vector<uint8_t>& want) {
  return found == want;
}

TEST_CASE("a thread that makes several items goes on in the right row") {
  // The tests' device has one multiprocessor, and so 8192 threads, whose number no row of these
  // divides.
  const Fake fake;
  Expansion expansion;
  SECTION("normalize, channels first") {
    expansion.channels_first = true;
    // Of which 16 bytes divide the planes, and do not.
    const int64_t width = GENERATE(12, 13);
    const int64_t channels = GENERATE(3, 4, 5);
    const std::vector<int64_t> shape = {500, 9, width, channels};
    const std::vector<uint8_t> from = RandomBytes(static_cast<size_t>(500 * 9 * width * channels));
    CHECK(Same(Expanded(fake, expansion, TensorDType::kUint8, shape, from),
               Computed("transpose(float32(x), [2, 0, 1])", TensorDType::kUint8, shape, from)));
  }
  SECTION("one_hot") {
    expansion.kind = Expansion::Kind::kOneHot;
    expansion.depth = GENERATE(7, 1003, 40'000);
    const std::vector<uint8_t> from = RandomBytes(expansion.depth == 7 ? 9001 : 150);
    const std::vector<int64_t> shape = {static_cast<int64_t>(from.size())};
    CHECK(Same(Expanded(fake, expansion, TensorDType::kUint8, shape, from),
               Computed("one_hot(x, " + std::to_string(expansion.depth) + ")", TensorDType::kUint8,
                        shape, from)));
  }
  SECTION("unpack_bits") {
    expansion.kind = Expansion::Kind::kUnpackBits;
    const std::vector<uint8_t> from = RandomBytes(300 * 77);
    CHECK(Same(Expanded(fake, expansion, TensorDType::kUint8, {300, 77}, from),
               Computed("float32(unpack_bits(x))", TensorDType::kUint8, {300, 77}, from)));
  }
}

TEST_CASE("one_hot gives the bytes of map") {
  const Fake fake;
  const Type from = GENERATE(Type{"uint8", TensorDType::kUint8}, Type{"int32", TensorDType::kInt32},
                             Type{"int64", TensorDType::kInt64});
  const Type to =
      GENERATE(Type{"uint8", TensorDType::kUint8}, Type{"float16", TensorDType::kFloat16},
               Type{"bfloat16", TensorDType::kBfloat16}, Type{"float32", TensorDType::kFloat32},
               Type{"float64", TensorDType::kFloat64});
  const int64_t depth = GENERATE(1, 6, 1003);
  const int64_t size = from.dtype == TensorDType::kUint8   ? 1
                       : from.dtype == TensorDType::kInt32 ? 4
                                                           : 8;
  std::vector<uint8_t> indices;
  const std::vector<int64_t> wanted = {0,  5, 1,         depth - 1, depth, 200,
                                       -1, 3, INT64_MIN, INT64_MAX, 0};
  for (const int64_t index : wanted) {
    const int64_t stored = from.dtype == TensorDType::kUint8 ? index & 0xFF : index;
    const auto* bytes = reinterpret_cast<const uint8_t*>(&stored);
    indices.insert(indices.end(), bytes, bytes + size);
  }
  Expansion expansion;
  expansion.kind = Expansion::Kind::kOneHot;
  expansion.dtype = to.dtype;
  expansion.depth = depth;
  const std::string expression =
      std::string(to.name) + "(one_hot(x, " + std::to_string(depth) + "))";
  CHECK(Expanded(fake, expansion, from.dtype, {8}, indices) ==
        Computed(expression, from.dtype, {8}, indices));
}

TEST_CASE("unpack_bits gives the bytes of map") {
  const Fake fake;
  const Type to =
      GENERATE(Type{"uint8", TensorDType::kUint8}, Type{"float16", TensorDType::kFloat16},
               Type{"bfloat16", TensorDType::kBfloat16}, Type{"float32", TensorDType::kFloat32},
               Type{"float64", TensorDType::kFloat64});
  const std::vector<uint8_t> from = RandomBytes(37 * 11);
  Expansion expansion;
  expansion.kind = Expansion::Kind::kUnpackBits;
  expansion.dtype = to.dtype;
  CHECK(Expanded(fake, expansion, TensorDType::kUint8, {37, 11}, from) ==
        Computed(std::string(to.name) + "(unpack_bits(x))", TensorDType::kUint8, {37, 11}, from));
}

TEST_CASE("every float32 rounds as the CPU rounds it") {
  // Every exponent, and the fractions around each tie.
  std::vector<uint8_t> from;
  for (uint32_t exponent = 0; exponent < 512; ++exponent) {
    for (const uint32_t fraction : {0u, 1u, 0xFFFu, 0x1000u, 0x1001u, 0x2000u, 0x3000u, 0x7FFFu,
                                    0x8000u, 0x8001u, 0x18000u, 0x400000u, 0x555555u, 0x7FFFFFu}) {
      const uint32_t bits = exponent << 23 | fraction;
      // NaNs keep no promise about their bits.
      if ((exponent & 0xFF) == 0xFF && fraction != 0) continue;
      const auto* bytes = reinterpret_cast<const uint8_t*>(&bits);
      from.insert(from.end(), bytes, bytes + 4);
    }
  }
  const auto count = static_cast<int64_t>(from.size() / 4);
  std::vector<uint8_t> half(count * 2);
  std::vector<uint8_t> brain(count * 2);
  for (int64_t i = 0; i < count; ++i) {
    float number;
    std::memcpy(&number, from.data() + i * 4, 4);
    const uint16_t half_bits = ToHalfBits(number);
    const uint16_t brain_bits = ToBrainBits(number);
    std::memcpy(half.data() + i * 2, &half_bits, 2);
    std::memcpy(brain.data() + i * 2, &brain_bits, 2);
  }
  CHECK(half == Computed("float16(x)", TensorDType::kFloat32, {1, count}, from));
  CHECK(brain == Computed("bfloat16(x)", TensorDType::kFloat32, {1, count}, from));
}

TEST_CASE("an expansion that cannot be is refused") {
  struct Case {
    Expansion expansion;
    TensorDType from;
    std::vector<int64_t> shape;
    const char* words;
  };
  Expansion floats;
  Expansion bytes;
  bytes.dtype = TensorDType::kUint8;
  Expansion wide;
  wide.channels_first = true;
  Expansion two;
  two.mean = {1, 2};
  Expansion one_hot;
  one_hot.kind = Expansion::Kind::kOneHot;
  Expansion deep = one_hot;
  deep.depth = 1 << 20;
  Expansion bits;
  bits.kind = Expansion::Kind::kUnpackBits;
  Expansion integers = floats;
  integers.dtype = TensorDType::kInt32;
  const Case cases[] = {
      {floats, TensorDType::kInt32, {8, 3}, "takes a tensor of uint8"},
      {bytes, TensorDType::kUint8, {8, 3}, "normalize gives float16"},
      {floats, TensorDType::kUint8, {8}, "an axis of rows and one of channels: found 1"},
      {floats, TensorDType::kUint8, {8, -1}, "only tensors of fixed size"},
      {wide, TensorDType::kUint8, {8, 4, 17}, "at most 16 channels: 17"},
      {two, TensorDType::kUint8, {8, 4, 3}, "the tensor has 3, there are 2"},
      {one_hot, TensorDType::kInt64, {8}, "one_hot.depth is not in [1, 1048576]: 0"},
      {deep, TensorDType::kInt64, {8, 5000}, "less than 2^31 values: 5242880000"},
      {deep, TensorDType::kFloat32, {8}, "takes a tensor of uint8, int32 or int64"},
      {bits, TensorDType::kInt64, {8, 3}, "takes a tensor of uint8"},
      {bits, TensorDType::kUint8, {8, INT64_MAX / 4}, "too many values"},
      {integers, TensorDType::kUint8, {8, 3}, "gives float16, bfloat16, float32, float64 or uint8"},
  };
  for (const Case& one : cases) {
    Expansion expansion = one.expansion;
    const Status status = Plan(one.from, one.shape, &expansion);
    INFO(status.message << " / " << one.words);
    CHECK(status.code == Code::kInvalidArgument);
    CHECK(status.message.find(one.words) != std::string::npos);
  }
}

TEST_CASE("a program that was built without nvcc says so") {
  const Fake fake;
  std::unique_ptr<Expander> expander;
  const Status status = Expander::Create(fake.Open(), {}, &expander);
  CHECK(status.code == Code::kUnimplemented);
  CHECK(status.message.find("built without nvcc") != std::string::npos);
}

}  // namespace
}  // namespace penstock::cuda
