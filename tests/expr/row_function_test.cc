// Functions that work row by row: sizes that only the data tells, tiles that go on into arithmetic,
// errors with their row.
#include <cstring>
#include <numeric>

#include "base/row_shape.h"
#include "server/expr/each_string.h"
#include "server/expr/function.h"
#include "server/expr/program.h"
#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

// A string of n bytes becomes uint8 (n, 2): each byte and its successor.
class Pairs : public RowKernel {
 public:
  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    if (in.bytes > 0 && in.data[0] == 'X') return absl::DataLossError("not a pair");
    out.SetShape({static_cast<int64_t>(in.bytes), 2});
    for (size_t i = 0; i < in.bytes; ++i) {
      uint8_t* tile = out.Reserve(2);
      tile[0] = in.data[i];
      tile[1] = static_cast<uint8_t>(in.data[i] + 1);
      out.Commit();
    }
    return absl::OkStatus();
  }
};

// Any tensor of numbers becomes float32 (times * 3,): its first byte or float, its number of axes,
// its elements; again and again.
class Summary : public RowKernel {
 public:
  explicit Summary(int64_t times) : times_(times) {}
  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const auto elements = static_cast<float>(*NumElements(in.shape));
    float first;
    if (in.bytes == static_cast<size_t>(*NumElements(in.shape))) {
      first = in.data[0];
    } else {
      std::memcpy(&first, in.data, sizeof(first));
    }
    // All that Reserve() promises is used: 64 bytes behind may be overwritten.
    for (int64_t i = 0; i < times_; ++i) {
      uint8_t* tile = out.Reserve(3 * sizeof(float));
      std::memset(tile, 0x77, 3 * sizeof(float) + 64);
      const float values[] = {first + static_cast<float>(i), static_cast<float>(in.shape.size()),
                              elements};
      std::memcpy(tile, values, sizeof(values));
      out.Commit();
    }
    return absl::OkStatus();
  }

 private:
  const int64_t times_;
};

absl::StatusOr<BoundRowFunction> BindPairs(absl::Span<const Argument> arguments) {
  if (arguments[0].type.dtype != DType::kString)
    return absl::InvalidArgumentError("expected a string scalar");
  return BoundRowFunction{{DType::kUint8, {kUnknownSize, 2}}, std::make_shared<Pairs>(), {0}};
}

absl::StatusOr<BoundRowFunction> BindSummary(absl::Span<const Argument> arguments) {
  int64_t times = 1;
  if (arguments[1].given) {
    const auto* number =
        arguments[1].literal ? std::get_if<int64_t>(arguments[1].literal) : nullptr;
    if (number == nullptr)
      return absl::InvalidArgumentError("expected a constant integer for times");
    times = *number;
  }
  return BoundRowFunction{{DType::kFloat32, {3 * times}}, std::make_shared<Summary>(times), {0}};
}

const RowFunctionRegistration kPairs({"test_pairs", "test_pairs(text)",
                                      "Only for this test: pairs.", BindPairs});
const RowFunctionRegistration kSummary({"test_summary", "test_summary(x, times=1)",
                                        "Only for this test: a summary.", BindSummary});

// The same of each string of a tensor, whose results have at most 12 bytes together.
absl::StatusOr<BoundRowFunction> BindLimited(absl::Span<const Argument> arguments) {
  if (absl::Status status = ReadStrings(arguments[0], "texts"); !status.ok()) return status;
  return ForEachString(
      arguments[0].type.shape,
      BoundRowFunction{{DType::kUint8, {kUnknownSize, 2}}, std::make_shared<Pairs>(), {0}}, 12);
}
const RowFunctionRegistration kLimited({"test_limited", "test_limited(texts)",
                                        "Only for this test: limited.", BindLimited});

struct Rows {
  explicit Rows(std::vector<std::string> values) : texts(std::move(values)) {
    for (std::string& text : texts) {
      const size_t size = text.size();
      text.resize(size + 64);
      rows.push_back({reinterpret_cast<const uint8_t*>(text.data()), size});
    }
  }
  std::vector<std::string> texts;
  std::vector<RowBytes> rows;
};

const Signature kInputs = {{"text", {DType::kString, {}}}, {"label", {DType::kInt64, {}}}};

std::vector<float> Run(const std::string& text, const Rows& rows, size_t floats_per_row,
                       RowStatus* status = nullptr) {
  MapSource map;
  map.stage = "map";
  map.outs = {"n = feature(\"label\")", "y = " + text};
  auto program = Compile(kInputs, {map});
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  const size_t count = rows.rows.size();
  std::vector<int64_t> labels(count);
  std::iota(labels.begin(), labels.end(), 40);
  std::vector<int64_t> label_out(count + 1, -1);
  // What follows belongs to somebody else.
  std::vector<float> out(count * floats_per_row + 32, -7);
  const Column in[] = {{nullptr, 0, rows.rows.data()},
                       {reinterpret_cast<uint8_t*>(labels.data()), 8, nullptr}};
  uint8_t* const outs[] = {reinterpret_cast<uint8_t*>(label_out.data()),
                           reinterpret_cast<uint8_t*>(out.data())};
  Arena arena;
  const RowStatus result = (*program)->Run(static_cast<int>(count), in, outs, arena);
  if (status != nullptr) {
    *status = result;
    return {};
  }
  REQUIRE(result.ok());
  for (size_t i = count * floats_per_row; i < out.size(); ++i) REQUIRE(out[i] == -7);
  CHECK(label_out[count] == -1);
  labels.push_back(-1);
  CHECK(label_out == labels);
  out.resize(count * floats_per_row);
  return out;
}

TEST_CASE("Values of unknown size pass between functions and through arithmetic with constants") {
  const Rows rows({"abc", "b", "cdefgh"});
  CHECK(Run("test_summary(test_pairs(text))", rows, 3) ==
        std::vector<float>{97, 2, 6, 98, 2, 2, 99, 2, 12});
  CHECK(Run("test_summary(float32(test_pairs(text)) / 2 + 0.5)", rows, 3) ==
        std::vector<float>{49, 2, 6, 49.5, 2, 2, 50, 2, 12});
}

// A row of strings of shape (n,) as a column has it.
std::string Strings(const std::vector<std::string>& strings) {
  std::string row;
  for (const std::string& string : strings) {
    const auto size = static_cast<uint32_t>(string.size());
    row.append(reinterpret_cast<const char*>(&size), sizeof(size));
  }
  for (const std::string& string : strings) row += string;
  return row;
}

TEST_CASE("The results of a row's strings have a limit together, at which the row still passes") {
  struct Case {
    std::vector<std::string> strings;
    std::string message;
  };
  const std::vector<Case> kCases = {
      {{"abc", "def"}, ""},
      {{"abcdef"}, ""},
      {{"abcdefg"}, "results larger than the limit: 14 > 12 bytes of 1 strings"},
      {{"ab", "cd", "ef", "gh", "ij"}, "results larger than the limit: 16 > 12 bytes of 4 strings"},
      {{"ab", "Xd"}, "string 1 of 2: not a pair"},
      {{"ab", "c"},
       "expected results of one shape, found uint8 (2, 2) of the first string and uint8 (1, 2) of "
       "number 1"},
  };
  for (const Case& c : kCases) {
    MapSource map;
    map.stage = "map";
    map.outs = {"y = test_limited(texts)"};
    auto program = Compile({{"texts", {DType::kString, {kUnknownSize}}}}, {map});
    INFO(program.status().ToString());
    REQUIRE(program.ok());
    const Rows rows({Strings(c.strings)});
    int64_t count = static_cast<int64_t>(c.strings.size());
    Column in{nullptr, 0, rows.rows.data()};
    in.dims = &count;
    Column out;
    Arena arena;
    const RowStatus status = (*program)->Run(1, {&in, 1}, {&out, 1}, arena);
    CHECK(std::string(status.status.message()) == c.message);
    if (!c.message.empty()) continue;
    REQUIRE(status.ok());
    CHECK(out.row_size(0) == 12);
  }
}

TEST_CASE("A tensor without elements has no axis that nobody could go through") {
  MapSource map;
  map.stage = "map";
  map.outs = {"y = sum(x, axis=-2)"};
  constexpr int64_t kLarge = int64_t{1} << 40;
  const auto program_of = [&](const Shape& shape) {
    return Compile({{"x", {DType::kFloat32, shape}}}, {map});
  };
  CHECK(std::string(program_of({0, kLarge}).status().message()) ==
        "stage \"map\": \"x\": expected at most 268435456 elements in a row but for the axis that "
        "has none, found float32 (0, 1099511627776)");
  const auto program = program_of({kUnknownSize, kUnknownSize});
  REQUIRE(program.ok());
  const auto run = [&](int64_t width) {
    const Rows rows({""});
    const int64_t dims[] = {0, width};
    Column in{nullptr, 0, rows.rows.data()};
    in.dims = dims;
    Column out;
    Arena arena;
    const RowStatus status = (*program)->Run(1, {&in, 1}, {&out, 1}, arena);
    if (status.ok()) CHECK(out.row_size(0) == static_cast<size_t>(width) * sizeof(float));
    return std::string(status.status.message());
  };
  CHECK(run(3).empty());
  CHECK(run(kLarge) == "tensor larger than limit: (0, 1099511627776) > 268435456 elements");
}

TEST_CASE("Arithmetic behind a function takes its tiles") {
  const Rows rows({"abc", "b", "cdefgh", "d", "e"});
  std::vector<float> want;
  for (const auto& [first, elements] : {std::pair(97, 6), {98, 2}, {99, 12}, {100, 2}, {101, 2}}) {
    for (int i = 0; i < 50; ++i) {
      for (const float value :
           {static_cast<float>(first + i), 2.0f, static_cast<float>(elements)}) {
        want.push_back(2 * (value / 255) - 1);
      }
    }
  }
  CHECK(Run("2 * (test_summary(test_pairs(text), times=50) / 255) - 1", rows, 150) == want);
}

TEST_CASE("An array's period goes on from tile to tile") {
  const Rows rows({"abc", "b"});
  MapSource map;
  map.stage = "map";
  NamedConstant c{"C", DType::kFloat32, false, {}, {1, 10, 100, 2, 20, 200}, {}};
  map.constants = {c};
  map.outs = {"y = test_summary(test_pairs(text), 2) * C"};
  auto program = Compile(kInputs, {map});
  REQUIRE(program.ok());
  CHECK_THAT((*program)->DebugString(), Catch::Matchers::Contains("each tile then"));
  std::vector<float> out(12);
  const Column in[] = {{nullptr, 0, rows.rows.data()}, {}};
  uint8_t* const outs[] = {reinterpret_cast<uint8_t*>(out.data())};
  Arena arena;
  REQUIRE((*program)->Run(2, in, outs, arena).ok());
  CHECK(out == std::vector<float>{97, 20, 600, 196, 40, 1200, 98, 20, 200, 198, 40, 400});
}

// The rows of a column of float32, each with its shape in front.
std::vector<std::vector<float>> ShapedRows(const TensorType& type, const Column& column, int rows) {
  std::vector<std::vector<float>> values;
  for (int r = 0; r < rows; ++r) {
    const Shape shape = RowDims(type, column, r);
    std::vector<float>& row = values.emplace_back(shape.begin(), shape.end());
    const auto* begin = reinterpret_cast<const float*>(column.row(r));
    row.insert(row.end(), begin, begin + column.row_size(r) / sizeof(float));
  }
  return values;
}

// Features with axes that only the data tells: lists of floats, and rows of two of them.
struct Lists {
  std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<RowBytes> rows;
  std::vector<RowBytes> pairs;
  std::vector<int64_t> dims = {3, 0, 2};
  std::vector<int64_t> pair_dims = {1, 2, 2, 2, 0, 2};
  Signature signature = {{"x", {DType::kFloat32, {kUnknownSize}}},
                         {"p", {DType::kFloat32, {kUnknownSize, 2}}}};
  Lists() {
    values.resize(values.size() + 64);
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    rows = {{bytes, 12}, {bytes, 0}, {bytes + 12, 8}};
    pairs = {{bytes, 8}, {bytes + 8, 16}, {bytes, 0}};
  }
  std::vector<Column> columns() const {
    return {{nullptr, 0, rows.data(), dims.data()}, {nullptr, 0, pairs.data(), pair_dims.data()}};
  }
};

TEST_CASE("Values of unknown size come in and go out with their shapes") {
  const Lists lists;
  using Values = std::vector<std::vector<float>>;
  const struct {
    const char* out;
    Values want;
  } cases[] = {
      {"y = x", {{3, 1, 2, 3}, {0}, {2, 4, 5}}},
      {"y = x * 2 - 1", {{3, 1, 3, 5}, {0}, {2, 7, 9}}},
      {"y = x * (x + 1)", {{3, 2, 6, 12}, {0}, {2, 20, 30}}},
      {"y = where(x > 2, x, -x)", {{3, -1, -2, 3}, {0}, {2, 4, 5}}},
      {"y = float32(int32(x) * int32(x)) + float32(x)", {{3, 2, 6, 12}, {0}, {2, 20, 30}}},
      {"y = p", {{1, 2, 1, 2}, {2, 2, 3, 4, 5, 6}, {0, 2}}},
      {"y = p * float32([10, 100])", {{1, 2, 10, 200}, {2, 2, 30, 400, 50, 600}, {0, 2}}},
      {"y = p - float32([[1, 2]])", {{1, 2, 0, 0}, {2, 2, 2, 2, 4, 4}, {0, 2}}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.out);
    MapSource map;
    map.stage = "map";
    map.outs = {c.out, "again = p", "y2 = x"};
    auto program = Compile(lists.signature, {map});
    INFO(program.status().ToString());
    REQUIRE(program.ok());
    Arena arena;
    std::vector<Column> out(3);
    REQUIRE((*program)->Run(3, lists.columns(), absl::MakeSpan(out), arena).ok());
    CHECK(ShapedRows((*program)->output()[0].type, out[0], 3) == c.want);
    CHECK(ShapedRows((*program)->output()[1].type, out[1], 3) == cases[5].want);
    CHECK(ShapedRows((*program)->output()[2].type, out[2], 3) == cases[0].want);
  }
}

TEST_CASE("Results of unknown size outlive the rows behind them, and strings are handed on") {
  const Rows rows({"abc", "b", "cdefgh", "dd"});
  MapSource map;
  map.stage = "map";
  map.outs = {"a = float32(test_pairs(text)) / 2", "b = test_pairs(text)", "t = text",
              "n = label + 1"};
  auto program = Compile(kInputs, {map});
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  std::vector<int64_t> labels = {1, 2, 3, 4}, label_out(4);
  const Column in[] = {{nullptr, 0, rows.rows.data()},
                       {reinterpret_cast<uint8_t*>(labels.data()), 8, nullptr}};
  Arena arena;
  std::vector<Column> out(4);
  out[3].data = reinterpret_cast<uint8_t*>(label_out.data());
  REQUIRE((*program)->Run(4, in, absl::MakeSpan(out), arena).ok());
  const Signature& made = (*program)->output();
  const auto halves = ShapedRows(made[0].type, out[0], 4);
  for (int r = 0; r < 4; ++r) {
    const std::string& text = rows.texts[r];
    const size_t length = rows.rows[r].size;
    // A pair for each byte.
    REQUIRE(halves[r].size() == 2 + 2 * length);
    CHECK(halves[r][0] == static_cast<float>(length));
    CHECK(halves[r][2] == static_cast<float>(text[0]) / 2);
    CHECK(RowDims(made[1].type, out[1], r) == Shape{static_cast<int64_t>(length), 2});
    CHECK(out[1].row(r)[0] == static_cast<uint8_t>(text[0]));
    CHECK(out[2].row(r) == rows.rows[r].data);
    CHECK(out[2].row_size(r) == length);
  }
  CHECK(label_out == std::vector<int64_t>{2, 3, 4, 5});
}

TEST_CASE("The lowest failing row is named") {
  RowStatus status;
  Run("test_summary(test_pairs(text))", Rows({"abc", "b", "Xyz", "X"}), 3, &status);
  CHECK_FALSE(status.ok());
  CHECK(status.row == 2);
  CHECK(status.status.message() == "not a pair");
}

TEST_CASE("What needs known sizes, or numbers, is refused") {
  MapSource map;
  map.stage = "map";
  const struct {
    const char* out;
    const char* message;
  } cases[] = {
      {"y = reshape(test_pairs(text), test_pairs(text))",
       "reshape: expected as many sizes as are known before, in one list, found uint8 (?, 2)"},
      {"y = test_pairs(text)[0, 2]", "index 2 is out of an axis of 2: uint8 (?, 2)"},
      {"y = test_pairs(text) + [1, 2, 3]", "do not broadcast: uint8 (?, 2) and int64 (3,)"},
      {"y = reshape(text, [2])", "reshape: expected a shape of 1 elements like (), found (2,)"},
      {"y = transpose(\"text\")", "transpose: expected a tensor, found a text"},
      {"y = text[0]", "expected at most 0 indices, found 1 for string ()"},
      {"y = \"text\"[0]", "expected a tensor before '[', found a text"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.out);
    map.outs = {c.out};
    const auto program = Compile(kInputs, {map});
    REQUIRE_FALSE(program.ok());
    CHECK_THAT(std::string(program.status().message()), Catch::Matchers::Contains(c.message));
  }
}

TEST_CASE("What is computed of known sizes by the way of unknown ones fills its rows") {
  const Rows rows({"abc", "bcd", "cdefgh"});
  CHECK(Run("float32(reshape(test_pairs(text)[:3], [6]))[::3]", rows, 2) ==
        std::vector<float>{97, 99, 98, 100, 99, 101});
  CHECK(Run("float32(test_pairs(text)[-1] + int64([1, 2])) / 2", rows, 2) ==
        std::vector<float>{50, 51, 50.5, 51.5, 52.5, 53.5});
  CHECK(Run("float32(test_pairs(text)[:2] + [[1, 2], [3, 4]])[..., 1]", rows, 2) ==
        std::vector<float>{100, 103, 101, 104, 102, 105});
  RowStatus status;
  Run("float32(test_pairs(text)[4])", rows, 2, &status);
  CHECK(status.row == 0);
  CHECK(status.status.message() == "index 4 is out of axis 0 of (3, 2)");
  Run("float32(test_pairs(text)[:5] + [[1], [2], [3]])", rows, 6, &status);
  CHECK(status.row == 2);
  CHECK(status.status.message() == "shapes do not broadcast: (3, 1) to (5, 2)");
}

}  // namespace
}  // namespace penstock::expr
