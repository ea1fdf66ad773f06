// What may take long for one row looks for a stop in the middle of it (base/stop_flag.h).
#include <zlib.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/arena.h"
#include "base/stop_flag.h"
#include "server/codec/inflate.h"
#include "server/codec/jpeg.h"
#include "server/codec/jpeg_writer.h"
#include "server/codec/png.h"
#include "server/codec/png_writer.h"
#include "tests/functions/image/row_function.h"
#include "tests/support/stops_soon.h"

namespace penstock::testing {
namespace {

std::vector<uint8_t> Noise(size_t bytes, uint8_t mask) {
  std::vector<uint8_t> noise(bytes);
  uint64_t state = 1;
  for (uint8_t& byte : noise)
    byte = static_cast<uint8_t>((state = state * 6364136223846793005 + 1442695040888963407) >> 56 &
                                mask);
  return noise;
}

struct Case {
  std::string function;
  std::vector<TensorType> types;  // of the arguments that are tensors
  std::vector<LiteralArgument> rest;
};

// One row of a function.
class Row {
 public:
  explicit Row(const Case& test) {
    const expr::FunctionEntry* const entry = expr::FindFunction(test.function);
    REQUIRE(entry != nullptr);
    std::vector<expr::Argument> arguments;
    for (const TensorType& type : test.types) {
      arguments.emplace_back().type = type;
      // Finite numbers of any float.
      const auto bytes = NumBytes(type);
      values_.push_back(Noise(bytes ? static_cast<size_t>(*bytes) : kStringBytes, 63));
      in_.push_back({values_.back().data(), values_.back().size(), type.shape});
    }
    for (const LiteralArgument& literal : test.rest) {
      expr::Argument& argument = arguments.emplace_back();
      argument.given = literal.given;
      argument.literal = literal.given ? &literal.value : nullptr;
    }
    const auto* const function = std::get_if<expr::RowFunction>(&entry->function);
    REQUIRE(function != nullptr);
    REQUIRE(entry->parameters.size() == arguments.size());
    auto bound = function->bind(arguments);
    INFO(test.function << ": " << bound.status().ToString());
    REQUIRE(bound.ok());
    kernel_ = bound->kernel;
  }

  void Compute() const {
    CollectedOutput out;
    Arena arena;
    const absl::Status status = kernel_->Run(in_, arena, out);
    INFO(status.ToString());
    CHECK(status.ok());
  }

 private:
  static constexpr size_t kStringBytes = 1 << 20;
  std::deque<std::vector<uint8_t>> values_;
  std::vector<expr::RowValue> in_;
  std::shared_ptr<const expr::RowKernel> kernel_;
};

TEST_CASE("fault 35: functions whose rows may take long look for a stop all over a row") {
  const TensorType text = {DType::kString, {}};
  const Case cases[] = {
      {"sort", {{DType::kFloat64, {1 << 20}}}, {int64_t{-1}}},
      {"sort", {{DType::kFloat64, {1 << 10, 1 << 11}}}, {int64_t{-1}}},
      {"sort", {{DType::kFloat64, {1 << 11, 1 << 10}}}, {int64_t{-2}}},
      {"sort", {{DType::kInt8, {1 << 21, 4}}}, {int64_t{-1}}},
      {"argsort", {{DType::kFloat64, {1 << 18}}}, {int64_t{-1}}},
      {"argsort", {{DType::kInt8, {1 << 22, 1}}}, {int64_t{-1}}},
      {"matmul", {{DType::kFloat32, {2048, 1024}}, {DType::kFloat32, {1024, 1024}}}, {}},
      {"searchsorted", {{DType::kUint8, {1 << 22}}, {DType::kUint8, {1 << 22}}}, {{}}},
      {"rfft", {{DType::kFloat64, {8, 1 << 18}}}, {{}}},
      {"rfft", {{DType::kFloat64, {1, 199999}}}, {{}}},
      {"rfft", {{DType::kFloat64, {1 << 16, 96}}}, {{}}},
      {"regex_replace", {text}, {std::string("[\\x01-\\x20]"), std::string("bb"), true}},
      {"regex_replace", {text}, {std::string("(.)\\x02*"), std::string("\\1\\0"), true}},
      {"regex_replace", {text}, {std::string(""), std::string("-"), true}},
      {"gaussian_blur", {{DType::kUint8, {1024, 1024, 3}}}, {int64_t{31}, {}}},
      {"gaussian_blur", {{DType::kFloat32, {1024, 1024, 3}}}, {int64_t{31}, {}}},
      {"encode_png", {{DType::kUint8, {1024, 1024, 3}}}, {int64_t{6}}},
      {"encode_jpeg", {{DType::kUint8, {2048, 2048, 3}}}, {int64_t{95}, false, false, true}},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    const Case& test = cases[i];
    // Of two sections of one name the second would not run.
    DYNAMIC_SECTION(i << ": " << test.function << " " << TypeToString(test.types[0])) {
      const Row row(test);
      test::CheckStopsSoon([&] { row.Compute(); });
    }
  }
}

TEST_CASE("what decodes a large image or string looks for a stop all over it") {
  SECTION("a JPEG of several scans") {
    const std::vector<uint8_t> pixels = Noise(size_t{2048} * 2048 * 3, 255);
    JpegWriteOptions options;
    options.progressive = true;
    const auto file = EncodeJpeg(pixels.data(), 2048, 2048, 3, options);
    REQUIRE(file.ok());
    std::vector<uint8_t> out(pixels.size());
    JpegDecoder decoder;
    const auto decode = [&] {
      // Not inside of a macro, which would take Stopped for a failure.
      const bool started =
          decoder.Start(reinterpret_cast<const uint8_t*>(file->data()), file->size(), {}).ok();
      const bool decoded = started && decoder.Decode(out.data()).ok();
      CHECK(decoded);
    };
    test::CheckStopsSoon(decode);
    // It serves the next image as ever.
    decode();
  }
  SECTION("a compressed string") {
    const std::vector<uint8_t> plain = Noise(size_t{32} << 20, 7);
    std::vector<uint8_t> file(compressBound(plain.size()));
    uLongf bytes = file.size();
    REQUIRE(compress2(file.data(), &bytes, plain.data(), plain.size(), 1) == Z_OK);
    test::CheckStopsSoon([&] {
      LargeCharge charge;
      const auto inflated = Inflate(file.data(), bytes, Wrapping::kZlib, charge);
      REQUIRE(inflated.ok());
      CHECK(inflated->size() == plain.size());
    });
  }
  SECTION("a PNG that is given alpha") {
    const std::vector<uint8_t> pixels = Noise(size_t{2048} * 2048 * 3, 255);
    const auto file = EncodePng(pixels.data(), 2048, 2048, 3, 1, 1);
    REQUIRE(file.ok());
    PngOptions options;
    options.channels = 4;
    std::vector<uint8_t> out(size_t{2048} * 2048 * 4);
    test::CheckStopsSoon([&] {
      PngDecoder decoder;
      const bool started =
          decoder.Start(reinterpret_cast<const uint8_t*>(file->data()), file->size(), options).ok();
      const bool decoded = started && decoder.Decode(out.data()).ok();
      CHECK(decoded);
    });
  }
}

TEST_CASE("a row that is over soon is not given up") {
  const auto computes = [](const Case& test) {
    const Row row(test);
    const std::atomic<bool> stop{true};
    const StopFlag::Scope scope(&stop);
    row.Compute();
  };
  computes({"sort", {{DType::kFloat64, {100}}}, {int64_t{-1}}});
  computes({"gaussian_blur", {{DType::kUint8, {16, 16, 3}}}, {int64_t{3}, {}}});
}

}  // namespace
}  // namespace penstock::testing
