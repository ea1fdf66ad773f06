// Functions that go through all bytes or values of a row look for a stop all over it
// (base/in_pieces.h): a row may have 2^28 values, and a text 1 GiB.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/arena.h"
#include "base/in_pieces.h"
#include "tests/functions/image/row_function.h"
#include "tests/support/stops_soon.h"

namespace penstock::testing {
namespace {

enum class Text { kLetters, kSpaces, kBase64, kQuotes, kNumber };

struct Case {
  std::string function;
  std::vector<TensorType> types;  // of the arguments that are tensors
  std::vector<LiteralArgument> rest;
  size_t text_bytes = size_t{32} << 20;
  Text text = Text::kLetters;
};

uint64_t Next(uint64_t* state) {
  return *state = *state * 6364136223846793005 + 1442695040888963407;
}

std::vector<uint8_t> TextOf(Text kind, size_t bytes) {
  if (kind == Text::kSpaces) return std::vector<uint8_t>(bytes, ' ');
  if (kind == Text::kNumber) {
    // In the middle of spaces.
    std::vector<uint8_t> text(bytes, ' ');
    text[bytes / 2] = '7';
    return text;
  }
  if (kind == Text::kQuotes) return std::vector<uint8_t>(bytes, '"');
  std::vector<uint8_t> text(bytes);
  uint64_t state = 1;
  for (uint8_t& byte : text) {
    const uint64_t drawn = Next(&state) >> 58;
    byte = static_cast<uint8_t>(drawn > 25 && kind == Text::kLetters ? ' ' : 'a' + drawn % 26);
  }
  return text;
}

// A tensor of strings as a column's row has it (base/column.h).
std::vector<uint8_t> StringsOfBytes(size_t count, size_t bytes) {
  const auto each = static_cast<uint32_t>(bytes / count);
  std::vector<uint8_t> row(count * (sizeof(each) + each), 'x');
  for (size_t i = 0; i < count; ++i)
    std::memcpy(row.data() + i * sizeof(each), &each, sizeof(each));
  return row;
}

// Memory that stays, so that a run's time is that of the function.
class KeptOutput final : public expr::RowOutput {
 public:
  explicit KeptOutput(std::vector<uint8_t>& memory) : memory_(memory) {}
  void SetShape(const Shape&) override {}
  uint8_t* Reserve(size_t bytes) override {
    // As those of a program do.
    CheckStop();
    if (memory_.size() < bytes + 64) memory_.resize(bytes + 64);
    return memory_.data();
  }
  void Commit() override {}

 private:
  std::vector<uint8_t>& memory_;
};

class Row {
 public:
  explicit Row(const Case& test) {
    const expr::FunctionEntry* const entry = expr::FindFunction(test.function);
    REQUIRE(entry != nullptr);
    std::vector<expr::Argument> arguments;
    for (const TensorType& type : test.types) {
      arguments.emplace_back().type = type;
      const auto bytes = NumBytes(type);
      if (bytes) {
        uint64_t state = 1;
        values_.emplace_back(static_cast<size_t>(*bytes));
        // Finite numbers of any float, and indices of few values.
        for (uint8_t& byte : values_.back()) byte = static_cast<uint8_t>(Next(&state) >> 58);
      } else if (type.shape.empty()) {
        values_.push_back(TextOf(test.text, test.text_bytes));
      } else {
        values_.push_back(
            StringsOfBytes(static_cast<size_t>(*NumElements(type.shape)), test.text_bytes));
      }
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

  void Compute() {
    KeptOutput out(memory_);
    Arena scratch;
    const absl::Status status = kernel_->Run(in_, scratch, out);
    INFO(status.ToString());
    CHECK(status.ok());
  }

 private:
  std::deque<std::vector<uint8_t>> values_;
  std::vector<expr::RowValue> in_;
  std::shared_ptr<const expr::RowKernel> kernel_;
  std::vector<uint8_t> memory_;
};

const TensorType kText = {DType::kString, {}};
const TensorType kStrings = {DType::kString, {1 << 21}};
const TensorType kImage = {DType::kUint8, {4096, 4096, 3}};
constexpr size_t kCopied = size_t{128} << 20;
constexpr int64_t kMany = 1 << 25;

void CheckAll(const std::vector<Case>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& test = cases[i];
    // Of two sections of one name the second would not run.
    DYNAMIC_SECTION(i << ": " << test.function << " " << TypeToString(test.types[0])) {
      Row row(test);
      test::CheckStopsSoon([&] { row.Compute(); });
    }
  }
}

TEST_CASE("fault 35: long texts that are compared with each other count as long") {
  // All pairs of texts that are alike to their last byte.
  Case test = {
      "string_equal", {{DType::kString, {1, 64}}, {DType::kString, {64, 1}}}, {}, size_t{32} << 20};
  Row row(test);
  test::CheckStopsSoon([&] { row.Compute(); });
}

TEST_CASE("fault 35: functions of long texts look for a stop all over them") {
  CheckAll({
      {"string_lower", {kText}, {}, kCopied},
      {"string_strip", {kText}, {}, kCopied, Text::kSpaces},
      {"string_to_number", {kText}, {std::string("float32")}, kCopied, Text::kNumber},
      {"string_to_number", {kText}, {std::string("int64")}, kCopied, Text::kNumber},
      {"string_strip", {kText}, {}, kCopied},
      {"string_length", {kText}, {std::string("UTF8_CHAR")}, size_t{256} << 20},
      {"substr", {kText}, {int64_t{1}, int64_t{1} << 30, std::string("UTF8_CHAR")}},
      {"bytes_split", {kText}, {}, size_t{16} << 20},
      {"encode_base64", {kText}, {true}},
      {"decode_base64", {kText}, {}, size_t{64} << 20, Text::kBase64},
      {"string_split", {kText}, {std::string(), int64_t{-1}}},
      {"string_split", {kText}, {std::string(), int64_t{-1}}, kCopied, Text::kSpaces},
      {"string_split", {kText}, {std::string("ab"), int64_t{-1}}, kCopied},
      {"string_join", {kText, kText}, {std::string(" ")}, kCopied},
      {"string_to_hash_bucket", {kText}, {int64_t{7}}, size_t{256} << 20},
      {"string_to_hash_bucket_strong",
       {kText},
       {int64_t{7}, std::vector<int64_t>{1, 2}},
       size_t{64} << 20},
      {"unicode_decode", {kText}, {std::string("replace")}},
      {"unicode_split", {kText}, {std::string("replace")}, size_t{16} << 20},
      {"reduce_join", {kStrings}, {{}, false, std::string("-")}},
      {"string_where", {{DType::kBool, {1 << 21}}, kStrings, kStrings}, {}},
      {"as_string",
       {{DType::kFloat64, {1 << 19}}},
       {int64_t{-1}, false, false, int64_t{-1}, std::string()}},
      {"concat", {kStrings, kStrings}, {{}, {}, int64_t{-1}}},
      // Of long ones, what takes long is the copy.
      {"roll", {kStrings}, {int64_t{5}, int64_t{-1}}, 2 * kCopied},
      {"roll", {{DType::kString, {2}}}, {int64_t{1}, int64_t{-1}}, 2 * kCopied},
      {"sort", {kStrings}, {int64_t{-1}}},
      {"decode_csv",
       {kText},
       {int64_t{0}, int64_t{0}, std::string("string"), std::string("none"), std::string(" "), true,
        std::string()}},
      {"decode_csv",
       {kText},
       {int64_t{0}, int64_t{0}, std::string("string"), {}, std::string(","), true, std::string()},
       size_t{32} << 20,
       Text::kQuotes},
      {"decode_raw", {kText}, {std::string("int16"), false, int64_t{0}}, kCopied},
      {"decode_raw", {kText}, {std::string("bool"), true, int64_t{0}}, kCopied},
      {"decode_compressed", {kText}, {std::string()}, 2 * kCopied},
  });
}

TEST_CASE("fault 35: functions of long tensors look for a stop all over them") {
  CheckAll({
      {"take",
       {{DType::kFloat32, {64}}, {DType::kUint8, {kMany}}},
       {int64_t{-1}, std::string("raise")}},
      {"bincount", {{DType::kUint8, {kMany}}}, {int64_t{0}, {}, {}, {}}},
      {"pack_bits", {{DType::kUint8, {2 * kMany}}}, {}},
      {"unpack_bits", {{DType::kUint8, {1 << 24}}}, {}},
      {"compress", {{DType::kBool, {kMany}}, {DType::kFloat32, {kMany}}}, {int64_t{-1}}},
      {"roll", {{DType::kFloat32, {2 * kMany}}}, {int64_t{5}, int64_t{-1}}},
      {"concat", {{DType::kFloat32, {kMany}}, {DType::kFloat32, {kMany}}}, {{}, {}, int64_t{-1}}},
      {"concat",
       {{DType::kFloat32, {1 << 22, 2}}, {DType::kFloat32, {1 << 22, 2}}},
       {{}, {}, int64_t{-1}}},
      {"argmax", {{DType::kFloat32, {2 * kMany}}}, {int64_t{-1}}},
      {"cumsum", {{DType::kInt32, {kMany}}}, {int64_t{-1}}},
      {"cumsum", {{DType::kInt32, {1 << 14, 1 << 11}}}, {int64_t{-2}}},
      {"sum", {{DType::kInt8, {8 * kMany}}}, {{}, false}},
      {"prod", {{DType::kInt32, {2 * kMany}}}, {{}, false}},
      {"std", {{DType::kInt16, {kMany}}}, {{}, false, int64_t{0}}},
      {"max", {{DType::kFloat32, {1 << 23, 3}}}, {int64_t{-1}, false}},
      {"sum", {{DType::kInt32, {1 << 14, 1 << 12}}}, {int64_t{-2}, false}},
      {"one_hot",
       {{DType::kInt32, {64}}},
       {int64_t{1} << 20, int64_t{1}, int64_t{2}, std::string("float32")}},
      {"pad",
       {{DType::kFloat32, {2 * kMany}}},
       {std::vector<int64_t>{1, 2}, std::string("constant"), int64_t{0}}},
      {"pad",
       {{DType::kFloat32, {1 << 23, 1}}},
       {std::vector<int64_t>{0, 0, 1, 2}, std::string("constant"), int64_t{0}}},
  });
}

TEST_CASE("fault 35: functions of large images look for a stop all over them") {
  CheckAll({
      {"equalize", {kImage}, {}},
      {"autocontrast", {kImage}, {int64_t{0}}},
      {"adjust_contrast", {kImage}, {2.0}},
      {"adjust_hue", {kImage}, {0.1}},
      {"adjust_saturation", {kImage}, {2.0}},
      {"adjust_sharpness", {kImage}, {2.0}},
      {"adjust_gamma", {kImage}, {2.0, 1.0}},
      {"posterize", {kImage}, {int64_t{3}}},
      {"solarize", {kImage}, {int64_t{128}}},
      {"per_image_standardization", {kImage}, {}},
      {"rgb_to_grayscale", {kImage}, {}},
      {"rgb_to_hsv", {{DType::kFloat32, {2048, 2048, 3}}}, {}},
      {"rotate", {kImage}, {0.3, std::string("bilinear"), int64_t{0}}},
      {"rot90", {kImage}, {int64_t{1}}},
      {"image_transpose", {kImage}, {}},
      {"flip_up_down", {kImage}, {}},
      {"resize",
       {kImage},
       {std::vector<int64_t>{2000, 2000}, std::string("bicubic"), false, true, std::string("tf")}},
      {"resize",
       {kImage},
       {std::vector<int64_t>{2000, 2000}, std::string("area"), false, false, std::string("tf")}},
      {"convert_image_dtype", {kImage}, {std::string("float32"), false}},
  });
}

// --- the same bytes in pieces and at once ------------------------------------------------------

std::string StringOf(const std::string& function, const std::string& text,
                     const std::vector<LiteralArgument>& rest, absl::Status* status) {
  const auto bound = Bind(function, {DType::kString, {}}, rest);
  REQUIRE(bound.ok());
  const expr::RowValue value = {reinterpret_cast<const uint8_t*>(text.data()), text.size(), {}};
  CollectedOutput out;
  Arena arena;
  *status = bound->kernel->Run({&value, 1}, arena, out);
  return {out.bytes().begin(), out.bytes().end()};
}

TEST_CASE("base64 of several pieces is that of the whole") {
  const std::vector<uint8_t> drawn = TextOf(Text::kLetters, (size_t{3} << 18) * 3 + 5);
  for (const size_t less : {0, 1, 2, 3, 4, 5, 6}) {
    for (const bool pads : {false, true}) {
      CAPTURE(less, pads);
      const std::string bytes(drawn.begin(), drawn.end() - static_cast<int64_t>(less));
      std::string expected = absl::WebSafeBase64Escape(bytes);
      if (pads) expected.append((4 - expected.size() % 4) % 4, '=');
      absl::Status status;
      // Not inside of a macro, which would write the texts down.
      const bool is_same = StringOf("encode_base64", bytes, {pads}, &status) == expected;
      CHECK(is_same);
      const bool comes_back = StringOf("decode_base64", expected, {}, &status) == bytes;
      CHECK(comes_back);
      // What is none stays so wherever it stands: as in the whole.
      for (const size_t at : {size_t{0}, (size_t{4} << 18) - 1, size_t{4} << 18,
                              (size_t{4} << 18) + 1, (size_t{12} << 18) - 1, expected.size() - 1}) {
        for (const char other : {'=', '-', '+', '!', ' ', '.'}) {
          std::string damaged = expected;
          damaged[at] = other;
          std::string plain;
          const bool is_web_safe = damaged.find_first_of("-_") != damaged.npos;
          const bool is_base64 = damaged.find_first_of(" \t\n\v\f\r.") == damaged.npos &&
                                 (is_web_safe ? absl::WebSafeBase64Unescape(damaged, &plain)
                                              : absl::Base64Unescape(damaged, &plain));
          CAPTURE(at, other);
          const std::string found = StringOf("decode_base64", damaged, {}, &status);
          CHECK(status.ok() == is_base64);
          const bool is_right = !is_base64 || found == plain;
          CHECK(is_right);
        }
      }
    }
  }
}

TEST_CASE("a separator that lies across two pieces is found") {
  for (const size_t at : {kPieceValues - 3, kPieceValues - 2, kPieceValues - 1, kPieceValues,
                          kPieceValues + 1, 2 * kPieceValues - 1}) {
    std::string text(3 * kPieceValues, 'x');
    text.replace(at, 3, "abc");
    for (const char* const sep : {"abc", "a", "c"}) {
      CAPTURE(at, sep);
      absl::Status status;
      const std::string parts =
          StringOf("string_split", text, {std::string(sep), int64_t{-1}}, &status);
      REQUIRE(status.ok());
      // Two parts, in front of which their sizes stand.
      CHECK(parts.size() == 2 * sizeof(uint32_t) + text.size() - std::string(sep).size());
      uint32_t first = 0;
      std::memcpy(&first, parts.data(), sizeof(first));
      CHECK(first == at + std::string("abc").find(sep));
    }
  }
}

}  // namespace
}  // namespace penstock::testing
