// What is refused, and in which words.
#include "server/expr/program.h"
#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

using Catch::Matchers::Contains;

Signature Inputs() {
  return {{"d", {DType::kUint8, {194}}},           {"s", {DType::kInt64, {}}},
          {"img", {DType::kUint8, {6, 5, 3}}},     {"f", {DType::kFloat32, {4}}},
          {"image/encoded", {DType::kString, {}}}, {"label", {DType::kInt64, {}}}};
}

struct Case {
  const char* out;
  const char* message;
};

TEST_CASE("A wrong expression is refused with its place") {
  const Case table[] = {
      {"y = 1 +", "column 8 of \"y = 1 +\": expected a value, found end of text"},
      {"y = (1", "column 7 of \"y = (1\": expected ')', found end of text"},
      {"y", "expected '=', found end of text"},
      {"= 1", "column 1 of \"= 1\": expected `name = expression`, found '='"},
      {"y = 1 2", "expected an operator or the end of text, found 2"},
      {"y = f $ 2", "column 7 of \"y = f $ 2\": unexpected character '$'"},
      {"y = 12abc", "expected a number, found \"12a\""},
      {"y = 99999999999999999999", "number out of range: 99999999999999999999"},
      {"y = -9223372036854775809",
       "column 6 of \"y = -9223372036854775809\": number out of range: -9223372036854775809"},
      {"y = s + 9223372036854775808", "add: 9223372036854775808 is out of the range of int64"},
      {"y = d * 18446744073709551615",
       "multiply: 18446744073709551615 is out of the range of uint8"},
      {"y = s * [1, 9223372036854775808]",
       "number out of range of int64 in a list: 9223372036854775808"},
      {"y = random_uniform(seed=9223372036854775808)", "seed: expected an integer constant"},
      {"y = s ** -1",
       "column 7 of \"y = s ** -1\": power: integers to negative integer powers are not allowed: "
       "make the base a float, as float32(x) ** -1; found int64 ()"},
      {"y = d ** -2", "power: integers to negative integer powers are not allowed"},
      {"y = (s > 1) ** -1", "power: integers to negative integer powers are not allowed"},
      {"y = s ** [1, -2]", "power: integers to negative integer powers are not allowed"},
      {"y = power(2, int32(-1))", "power: integers to negative integer powers are not allowed"},
      {"y = [10, 100] ** -1", "power: integers to negative integer powers are not allowed"},
      {"y = f << 1", "left_shift: expected integers, found float32 (4,)"},
      {"y = (s > 1) >> True", "right_shift: expected integers, found bool ()"},
      {"y = s << -9223372036854775808 << 18446744073709551615",
       "18446744073709551615 is out of the range of int64"},
      {"y = \"abc", "text without its closing quote"},
      {"y = labell",
       "column 5 of \"y = labell\": unknown name \"labell\", did you mean \"label\"?"},
      {"y = feature(\"image/encode\")",
       "unknown feature \"image/encode\", did you mean \"image/encoded\"?"},
      {"y = feature(f)", "expected feature(\"name\")"},
      {"y = tanhh(f)", "unknown function \"tanhh\", did you mean \"tanh\"?"},
      {"y = tanh", "\"tanh\" is a function: expected '('"},
      {"y = tanh()", "missing argument \"x\": tanh(x)"},
      {"y = tanh(f, f)", "expected at most 1 arguments: tanh(x)"},
      {"y = reshape(f, shapee=[2, 2])",
       "reshape has no argument \"shapee\", did you mean \"shape\"?"},
      {"y = reshape(f, x=[2, 2])", "argument \"x\" is given twice"},
      {"y = reshape(x=f, [2, 2])", "a positional argument after a keyword argument"},
      {"y = resample_audio(s, 8000, 16000)",
       "resample_audio: samples: expected float32 of shape (samples,) or (samples, channels), "
       "found int64 ()"},
      {"y = resample_audio(f, 8000, 0)",
       "rate_out: expected an integer constant of 1 to 1048576, found 0"},
      {"y = resample_audio(f, 8000, 4, rolloff=2)", "rolloff: expected a constant of 0.01 to 1"},
      {"y = f + img", "add: shapes do not broadcast: float32 (4,) and uint8 (6, 5, 3)"},
      {"y = reshape(f, [3])", "reshape: expected a shape of 4 elements like (4,), found (3,)"},
      {"y = f[4]", "index 4 is out of an axis of 4: float32 (4,)"},
      {"y = f[2:2]", "a slice without elements of an axis of 4"},
      {"y = f[0, 0]", "expected at most 1 indices, found 2 for float32 (4,)"},
      {"y = f[..., ...]", "expected at most one '...'"},
      {"y = f[::0]", "expected a slice's step other than 0"},
      {"y = f[f]", "expected a constant integer or list of integers, found float32 (4,)"},
      {"y = f[s:0.5]", "expected a constant integer or list of integers, found float64 ()"},
      {"y = f[::s]", "expected a constant integer or list of integers, found int64 ()"},
      {"y = f[s, [1, 2]]", "expected at most 1 indices, found 2 for float32 (4,)"},
      {"y = f[0.5]", "expected a constant integer or list of integers, found float64 ()"},
      {"y = img[0, [1, 2]]", "a list and an integer in one subscript"},
      {"y = feature(\"image/encoded\") + 1",
       "string_join: b: expected a string or a tensor of strings, found int64 ()"},
      {"y = label == \"cat\"", "equal: expected numbers, found a text"},
      {"y = feature(\"image/encoded\") < 3",
       "string_less: y: expected a string or a tensor of strings, found int64 ()"},
      {"y = where(feature(\"image/encoded\"), \"a\", \"b\")",
       "string_where: condition: expected flags or numbers, found string ()"},
      {"y = [\"a\", \"b\"] == [[\"a\", \"b\", \"c\"]]", "shapes do not broadcast"},
      {"y = [\"a\", 1]", "expected a list of texts, or of lists of as many texts"},
      {"y = [[\"a\"], [\"b\", \"c\"]]", "expected a list of texts, or of lists of as many texts"},
      {"y = [\"a\", [\"b\"]]", "expected a list of texts, or of lists of as many texts"},
      {"y = [\"a\", [\"b\", \"c\"]]", "expected a list of texts, or of lists of as many texts"},
      {"y = [\"a\", []]", "expected a list of texts, or of lists of as many texts"},
      {"y = [[[\"a\"]], [\"b\"]]", "expected a list of texts, or of lists of as many texts"},
      {"y = [1, \"a\"]", "a list holds constants only"},
      {"y = string_equal(\"a\", \"b\")", "found two constants"},
      {"y = regex_full_match(feature(\"image/encoded\"), \"(\")",
       "pattern: expected a regular expression, found \"(\""},
      {"y = string_lookup(feature(\"image/encoded\"), \"a\nb\na\")",
       "vocabulary: expected words that differ, found \"a\" at 0 and 2"},
      {"y = string_lookup(feature(\"image/encoded\"), [\"a\", \"b\", \"b\"])",
       "vocabulary: expected words that differ, found \"b\" at 1 and 2"},
      {"y = string_lookup(feature(\"image/encoded\"), [\"a\"], separator=\",\")",
       "separator: expected none beside a list of words"},
      {"y = string_lookup(feature(\"image/encoded\"), [[\"a\"]])",
       "vocabulary: expected a text or a list of texts"},
      {"y = unpack_bits(f)", "unpack_bits: expected uint8 of one axis at least"},
      {"y = f & 1", "bitwise_and: expected integers or bools, found float32 (4,)"},
      {"y = -(f > 0)", "negative: expected numbers, found bool (4,)"},
      {"y = d + 300", "add: 300 is out of the range of uint8"},
      {"y = d - 1 < 0 < 1", "comparisons do not chain"},
      {"y = f and f", "\"and\" works on single values: use &"},
      {"y = not f", "\"not\" works on single values: use ~"},
      {"y = [1, f]", "a list holds constants only"},
      {"y = []", "expected at least one item in a list"},
      {"y = \"text\"", "expected a tensor, found a text"},
      {"y = float8(f)", "unknown function \"float8\""},
      {"y = float16(f) + 1", "add: nothing is computed in float16: cast to it last"},
      {"y = tanh(bfloat16(f))", "tanh: nothing is computed in bfloat16"},
  };
  for (const Case& c : table) {
    CAPTURE(c.out);
    MapSource map;
    map.stage = "scale";
    map.outs = {c.out};
    const auto program = Compile(Inputs(), {map});
    REQUIRE_FALSE(program.ok());
    CHECK(program.status().code() == absl::StatusCode::kInvalidArgument);
    const std::string message(program.status().message());
    CHECK_THAT(message, Contains("stage \"scale\""));
    CHECK_THAT(message, Contains(c.message));
  }
}

TEST_CASE("Limits are errors, not stack overflows") {
  MapSource map;
  map.stage = "deep";
  const auto message = [&](const std::string& text) {
    map.outs = {text};
    const auto program = Compile(Inputs(), {map});
    return program.ok() ? std::string("accepted") : std::string(program.status().message());
  };
  CHECK_THAT(message("y = " + std::string(10'000, '(') + "f" + std::string(10'000, ')')),
             Contains("nested deeper than 200 levels"));
  CHECK_THAT(message("y = " + std::string(10'000, '-') + "f"), Contains("nested deeper than"));
  std::string sum = "y = f";
  for (int i = 0; i < 5000; ++i) sum += " + f";
  CHECK_THAT(message(sum), Contains("more than 2000 operators"));
  map.outs = {"y = long[:, None] * long"};
  CHECK_THAT(
      std::string(Compile({{"long", {DType::kFloat32, {20'000}}}}, {map}).status().message()),
      Contains("multiply: more than 268435456 elements in a row: float32 (20000, 20000)"));
  CHECK_THAT(message("y = " + std::string(70'000, ' ') + "f"), Contains("text longer than limit"));
  // Of a long text what stands around the column is quoted.
  const std::string far = message("y = " + std::string(30'000, ' ') + "nothing_of_that_name(1)" +
                                  std::string(30'000, ' ') + "+ f");
  CHECK_THAT(far, Contains("column 30005 of \"…   "));
  CHECK_THAT(far, Contains("nothing_of_that_name"));
  CHECK(far.size() < 1'200);
  std::string wide = "y = f[:, None]";
  for (int i = 0; i < 3; ++i) wide = "y = (" + wide.substr(4) + ")";
  CHECK(message("y = f") == "accepted");
}

TEST_CASE("Names are looked up in order, and doubles are refused") {
  MapSource map;
  map.stage = "map";
  map.constants = {{"f", DType::kInvalid, false, {}, {2.0}, {}}};
  map.outs = {"y = f"};
  auto program = Compile(Inputs(), {map});
  REQUIRE_FALSE(program.ok());
  CHECK_THAT(std::string(program.status().message()), Contains("both a constant and a feature"));
  map.outs = {"y = feature(\"f\")"};
  CHECK(Compile(Inputs(), {map}).ok());
  map.lets = {"f = 3"};
  program = Compile(Inputs(), {map});
  REQUIRE_FALSE(program.ok());
  CHECK_THAT(std::string(program.status().message()), Contains("\"f\" is the name of a constant"));
  map.lets = {};
  map.constants = {};
  map.outs = {"y = f", "y = s"};
  program = Compile(Inputs(), {map});
  REQUIRE_FALSE(program.ok());
  CHECK_THAT(std::string(program.status().message()), Contains("output \"y\" is given twice"));
  map.outs = {"y = f", "z = y + 1"};
  program = Compile(Inputs(), {map});
  REQUIRE_FALSE(program.ok());
  CHECK_THAT(std::string(program.status().message()),
             Contains("\"y\" is an output, which no expression can use"));
  map.outs = {};
  program = Compile(Inputs(), {map});
  REQUIRE_FALSE(program.ok());
  CHECK_THAT(std::string(program.status().message()), Contains("expected at least one out"));
}

TEST_CASE("Constants of a spec are checked") {
  MapSource map;
  map.stage = "map";
  map.outs = {"y = f + C"};
  const auto message = [&](NamedConstant constant) {
    map.constants = {std::move(constant)};
    const auto program = Compile(Inputs(), {map});
    return program.ok() ? std::string("accepted") : std::string(program.status().message());
  };
  CHECK_THAT(message({"C", DType::kInvalid, false, {}, {}, {}}),
             Contains("expected a value, found none"));
  CHECK_THAT(message({"C", DType::kInvalid, false, {}, {1}, {1}}), Contains("found both"));
  CHECK_THAT(message({"C", DType::kInvalid, true, {3}, {1}, {}}),
             Contains("expected (3,) values, found 1"));
  CHECK_THAT(message({"C", DType::kUint8, false, {}, {}, {-1}}),
             Contains("-1 is no value of uint8"));
  CHECK_THAT(message({"C", DType::kInt8, false, {}, {0.5}, {}}),
             Contains("0.5 is no value of int8"));
  CHECK_THAT(message({"C", DType::kString, false, {}, {1}, {}}),
             Contains("no constants of type string"));
  CHECK(message({"C", DType::kInvalid, false, {}, {1}, {}}) == "accepted");
}

TEST_CASE("Behind batch every expression must keep rows apart") {
  Signature inputs = {{"x", {DType::kFloat32, {4}}},
                      {"m", {DType::kFloat32, {3, 4}}},
                      {"s", {DType::kFloat32, {}}}};
  MapSource map;
  map.stage = "after";
  map.batched = true;
  const Case refused[] = {
      {"y = x[0]", "the first axis of float32 (?, 4) is the batch"},
      {"y = x[1:]", "is the batch"},
      {"y = x[::-1]", "is the batch"},
      {"y = x[[0, 1]]", "is the batch"},
      {"y = x[None]", "is the batch"},
      {"y = x + s", "reaches the batch axis"},
      {"y = x + m", "reaches the batch axis"},
      {"y = s * [1, 2, 3, 4]", "reaches the batch axis"},
      {"y = reshape(x, [4, -1])", "expected -1 as the first size"},
      {"y = transpose(x)", "axes that begin with 0"},
      {"y = transpose(m, [1, 0, 2])", "the first axis is the batch"},
      {"y = 1 + 2", "the same for all rows of a batch"},
      {"y = sum(x)", "expected an axis, as this is computed row by row"},
      {"y = x - max(x, keepdims=True)", "expected an axis"},
      {"y = shape(x)", "expected an axis"},
      {"y = pad(x, 1)", "expected an axis"},
  };
  for (const Case& c : refused) {
    CAPTURE(c.out);
    map.outs = {c.out};
    const auto program = Compile(inputs, {map});
    REQUIRE_FALSE(program.ok());
    CHECK_THAT(std::string(program.status().message()), Contains(c.message));
  }
  const std::pair<const char*, Shape> accepted[] = {
      {"y = x * 2 + 1", {4}},
      {"y = x[:, 1:3]", {2}},
      {"y = x[..., [3, 0]]", {2}},
      {"y = x + s[:, None]", {4}},
      {"y = m * x[:, None]", {3, 4}},
      {"y = x * [1, 2, 3, 4]", {4}},
      {"y = m * [[1], [2], [3]]", {3, 4}},
      {"y = reshape(m, [-1, 12])", {12}},
      {"y = transpose(m, [0, 2, 1])", {4, 3}},
      {"y = x[:, 0] - s", {}},
  };
  for (const auto& [out, shape] : accepted) {
    CAPTURE(out);
    map.outs = {out};
    const auto program = Compile(inputs, {map});
    INFO(program.status().ToString());
    REQUIRE(program.ok());
    CHECK((*program)->output()[0].type.shape == shape);
  }
}

}  // namespace
}  // namespace penstock::expr
