#include "server/codec/json_decoder.h"

#include <cstring>
#include <string>

#include "base/packed_row.h"
#include "tests/codec/json_document.h"

namespace penstock {
namespace {

using test::DecodeJsonField;
using test::JsonRow;

// "ok: " and the row's bytes as numbers, or strings with their sizes in front; else the error.
std::string Decoded(const std::string& feature, const std::string& document,
                    JsonErrors errors = JsonErrors::kStrict) {
  const absl::StatusOr<JsonRow> row = DecodeJsonField(feature, document, errors);
  if (!row.ok()) return std::string(row.status().message());
  std::string shown = "ok:";
  const auto numbers = [&](auto kind) {
    for (size_t at = 0; at < row->bytes.size(); at += sizeof(kind)) {
      std::memcpy(&kind, row->bytes.data() + at, sizeof(kind));
      absl::StrAppend(&shown, " ", kind);
    }
  };
  if (absl::StrContains(feature, "float64")) {
    numbers(0.0);
  } else if (absl::StrContains(feature, "float32")) {
    numbers(0.0F);
  } else if (absl::StrContains(feature, "int32")) {
    numbers(int32_t{0});
  } else if (absl::StrContains(feature, "int64")) {
    numbers(int64_t{0});
  } else if (absl::StrContains(feature, "bool")) {
    numbers(int8_t{0});
  } else {
    shown += " " + row->bytes;
  }
  return shown;
}

constexpr char kId[] = "name: 'id' dtype: 'int64'";

TEST_CASE("Of a key that comes twice the last one counts, with all below it") {
  CHECK(Decoded(kId, R"({"id": "wrong", "x": 5, "id": 2})") == "ok: 2");
  CHECK(
      Decoded(kId, R"({"id": 2, "id": "wrong"})") ==
      "feature \"id\" (id): expected int64, found the string \"wrong\" (byte 16 of the document)");
  const std::string name = "name: 'user.name' dtype: 'int64'";
  CHECK(Decoded(name, R"({"user": {"name": 1}, "user": {"name": 3}})") == "ok: 3");
  CHECK(Decoded(name, R"({"user": {"name": 1}, "user": {"id": 3}})") ==
        "feature \"user.name\" (user.name): missing, and there is no default_value");
  CHECK(Decoded(name + " default_value { ints: 9 }", R"({"user": {"name": 1}, "user": null})") ==
        "ok: 9");
}

TEST_CASE("What is wrong first is told, wherever a wanted string stands") {
  const std::string text = "name: 't' dtype: 'string'";
  const std::string escape = "not JSON: an escape that there is not (byte ";
  CHECK(Decoded(text, R"({"t": "a\n\"b\u0041\\", "u": "\n"})") == "ok: a\n\"bA\\");
  CHECK(Decoded(text, R"({"t": "a\x"})") == escape + "8 of the text)");
  CHECK(Decoded(text, R"({"t": "a\x", "u" 1})") == escape + "8 of the text)");
  CHECK(Decoded(text, R"({"t": "a\x", "t": "b"})") == escape + "8 of the text)");
  CHECK(Decoded(text, R"({"t": "b", "t": "\u12"})") == escape + "17 of the text)");
  CHECK(
      Decoded(text, R"({"u": 1 2, "t": "\x"})") ==
      "not JSON: expected a comma or } behind a value, found something else (byte 8 of the text)");
  CHECK(Decoded(text, R"({"t": "\ud800", "u": "\x"})") == escape + "22 of the text)");
}

TEST_CASE("Keys are compared by what they mean") {
  CHECK(Decoded(kId, R"({"\u0069d": 4})") == "ok: 4");
  CHECK(Decoded(R"(name: 'x' dtype: 'int64' path: 'a\\.b.\\[\\]')", R"({"a.b": {"[]": 4}})") ==
        "ok: 4");
  CHECK(Decoded("name: 'x' dtype: 'int64' path: 'a..b'", R"({"a": {"": {"b": 4}}})") == "ok: 4");
  CHECK(Decoded("name: 'x' dtype: 'int64' path: ''", "4") == "ok: 4");
  CHECK(Decoded("name: 'x' dtype: 'int64' path: '[1][0]'", "[0, [4]]") == "ok: 4");
  CHECK(Decoded("name: 'x' dtype: 'int64' path: 'n\\303\\244'", R"({"n\u00e4": 4})") == "ok: 4");
}

TEST_CASE("Numbers are of their types, or an error that names path, type and place") {
  const struct {
    const char* dtype;
    const char* value;
    const char* decoded;
  } cases[] = {
      {"int64", "9223372036854775807", "ok: 9223372036854775807"},
      {"int64", "-9223372036854775808", "ok: -9223372036854775808"},
      {"int64", "9223372036854775808",
       "feature \"id\" (id): expected int64, found one that is out of its range: "
       "9223372036854775808 (byte 7 of the document)"},
      {"int64", "-9223372036854775809",
       "feature \"id\" (id): expected int64, found one that is out of its range: "
       "-9223372036854775809 (byte 7 of the document)"},
      {"int64", "1.0",
       "feature \"id\" (id): expected int64, found one that is a number with a fraction or "
       "exponent: 1.0 (byte 7 of the document)"},
      {"int64", "true", "feature \"id\" (id): expected int64, found true (byte 7 of the document)"},
      {"int64", "null",
       "feature \"id\" (id): expected int64 (there is no default_value), found null (byte 7 of the "
       "document)"},
      {"int64", "[1]",
       "feature \"id\" (id): expected int64, found a list (byte 7 of the document)"},
      {"int64", "{}",
       "feature \"id\" (id): expected int64, found an object (byte 7 of the document)"},
      {"int32", "-2147483648", "ok: -2147483648"},
      {"int32", "2147483648",
       "feature \"id\" (id): expected int32, found one that is out of its range: 2147483648 (byte "
       "7 of the document)"},
      {"float32", "3", "ok: 3"},
      {"float32", "1e39",
       "feature \"id\" (id): expected float32, found one that is out of its range: 1e39 (byte 7 of "
       "the document)"},
      {"float32", "-Infinity", "ok: -inf"},
      {"float64", "1e400",
       "feature \"id\" (id): expected float64, found one that is out of its range: 1e400 (byte 7 "
       "of the document)"},
      {"float64", "1e-400", "ok: 0"},
      {"float64", "NaN", "ok: nan"},
      {"float64", "\"1\"",
       "feature \"id\" (id): expected float64, found the string \"1\" (byte 7 of the document)"},
      {"float64", "\"1.5\" } from_text", "ok: 1.5"},
      {"int64", "\"7\" } from_text", "ok: 7"},
      {"int64", "\" 7\" } from_text",
       "feature \"id\" (id): expected int64, found the string \" 7\" (byte 7 of the document)"},
      {"bool", "false", "ok: 0"},
      {"bool", "\"true\" } from_text", "ok: 1"},
      {"bool", "1", "feature \"id\" (id): expected bool, found 1 (byte 7 of the document)"},
      {"string", "1", "feature \"id\" (id): expected string, found 1 (byte 7 of the document)"},
      {"string", "\"a\\u00e9\"", "ok: a\xc3\xa9"},
      {"string", "\"\\ud800\"",
       "feature \"id\" (id): expected characters, found a lone surrogate in: the string "
       "\"\\ud800\" (byte 7 of the document)"},
  };
  for (const auto& number : cases) {
    INFO(number.dtype << " " << number.value);
    std::string value = number.value;
    std::string feature = absl::StrCat("name: 'id' dtype: '", number.dtype, "'");
    if (absl::EndsWith(value, " } from_text")) {
      value.resize(value.size() - strlen(" } from_text"));
      feature += " from_text: true";
    }
    CHECK(Decoded(feature, absl::StrCat("{\"id\": ", value, "}")) == number.decoded);
  }
}

TEST_CASE("Missing and null values take the default, or are an error") {
  const std::string defaulted = absl::StrCat(kId, " default_value { ints: -1 }");
  CHECK(Decoded(defaulted, "{}") == "ok: -1");
  CHECK(Decoded(defaulted, R"({"id": null})") == "ok: -1");
  CHECK(Decoded(defaulted + " refuse_null: true", "{}") == "ok: -1");
  CHECK(Decoded(defaulted + " refuse_null: true", R"({"id": null})") ==
        "feature \"id\" (id): expected int64, found null (byte 7 of the document)");
  CHECK(Decoded(kId, "{}") == "feature \"id\" (id): missing, and there is no default_value");
  CHECK(Decoded(kId, "null") ==
        "feature \"id\" (): expected an object (there is no default_value), found null (byte 0 of "
        "the document)");
  CHECK(Decoded(kId, "[1]") ==
        "feature \"id\" (): expected an object, found a list (byte 0 of the document)");
  CHECK(Decoded("name: 's' dtype: 'string' default_value { strings: 'none' }", "{}") == "ok: none");

  const std::string vector = "name: 'v' dtype: 'float64' shape: 2";
  CHECK(Decoded(vector + " default_value { floats: 5 }", "{}") == "ok: 5 5");
  CHECK(Decoded(vector + " default_value { floats: [5, 6] }", R"({"v": [1, null]})") == "ok: 1 6");
  CHECK(
      Decoded(vector, R"({"v": [1, null]})") ==
      "feature \"v\" (v[1]): expected float64 (there is no default_value), found null (byte 10 of "
      "the document)");

  const std::string many =
      "name: 'm' path: 'm[]' dtype: 'string' shape: -1 shape: 67108864 default_value { strings: "
      "'a dozen bytes' }";
  CHECK(Decoded(many, R"({"m": [null]})") ==
        "feature \"m\" (m[0]): values larger than limit, with its default in the place of null and "
        "of what is missing: 1073741824 bytes");

  const std::string list = "name: 'l' dtype: 'int64' shape: -1";
  CHECK(Decoded(list, "{}") == "feature \"l\" (l): missing, and allow_missing is not set");
  CHECK(Decoded(list + " allow_missing: true", "{}") == "ok:");
  CHECK(Decoded(list + " allow_missing: true", R"({"l": null})") == "ok:");
  CHECK(Decoded(list + " default_value { ints: 7 }", R"({"l": [1, null]})") == "ok: 1 7");
  CHECK(Decoded(list + " default_value { ints: 7 }", R"({"l": null})") ==
        "feature \"l\" (l): expected a list (allow_missing is not set), found null (byte 6 of the "
        "document)");
}

TEST_CASE("Lists have as many values as their shape says") {
  const std::string matrix = "name: 'm' dtype: 'int32' shape: [2, 2]";
  CHECK(Decoded(matrix, R"({"m": [[1, 2], [3, 4]]})") == "ok: 1 2 3 4");
  CHECK(Decoded(matrix, R"({"m": [[1, 2], [3, 4, 5]]})") ==
        "feature \"m\" (m[1]): expected 2 values, found 3");
  CHECK(Decoded(matrix, R"({"m": [[1, 2], [3, 4], [5, 6], [7, 8]]})") ==
        "feature \"m\" (m): expected 2 values, found 4");
  CHECK(Decoded(matrix, R"({"m": [[1, 2]]})") == "feature \"m\" (m): expected 2 values, found 1");
  CHECK(Decoded(matrix, R"({"m": [[1, 2], 3]})") ==
        "feature \"m\" (m[1]): expected a list, found 3 (byte 15 of the document)");
  const std::string pairs = "name: 'p' dtype: 'int64' shape: [-1, 2]";
  const auto row =
      DecodeJsonField(pairs, R"({"p": [[1, 2], [3, 4], [5, 6]]})", JsonErrors::kStrict);
  REQUIRE(row.ok());
  CHECK((row->dims == std::vector<int64_t>{3, 2}));
  CHECK(Decoded(pairs, R"({"p": []})") == "ok:");
  CHECK(Decoded("name: 'x' dtype: 'int64' path: 'l[3]'", R"({"l": [1, 2]})") ==
        "feature \"x\" (l[3]): missing, and there is no default_value");
  const std::string strings = "name: 's' dtype: 'string' shape: 2";
  CHECK(Decoded(strings, R"({"s": ["a", "b\n"]})") == std::string("ok: \1\0\0\0\2\0\0\0ab\n", 15));
}

TEST_CASE("Values of objects in a list become a list, and lists of them a ragged row") {
  const std::string roles = "name: 'r' dtype: 'string' path: 'm[].role' shape: -1";
  const std::string document =
      R"({"m": [{"role": "user", "t": [1]}, {"t": [2, 3], "role": "bot"}]})";
  CHECK(Decoded(roles, document) == std::string("ok: \4\0\0\0\3\0\0\0userbot", 19));
  CHECK(Decoded(roles, R"({"m": [{"role": "user"}, {}]})") ==
        "feature \"r\" (m[1].role): missing, and there is no default_value");
  CHECK(Decoded(roles + " default_value { strings: '?' }", R"({"m": [{}, null]})") ==
        std::string("ok: \1\0\0\0\1\0\0\0??", 14));
  CHECK(Decoded(roles, R"({"m": [{"role": 5}]})") ==
        "feature \"r\" (m[0].role): expected string, found 5 (byte 16 of the document)");
  const std::string tokens = "name: 't' dtype: 'int64' path: 'm[].t' shape: -1 shape: -1";
  const auto row = DecodeJsonField(tokens, document, JsonErrors::kStrict);
  REQUIRE(row.ok());
  const RaggedRow ragged =
      ReadRaggedRow({DType::kInt64, {kUnknownSize, kUnknownSize}, RowForm::kPackedRagged},
                    {reinterpret_cast<const uint8_t*>(row->bytes.data()), row->bytes.size()});
  REQUIRE(ragged.splits.size() == 1);
  CHECK((std::vector<int64_t>(ragged.splits[0].begin(), ragged.splits[0].end()) ==
         std::vector<int64_t>{0, 1, 3}));
  CHECK(ragged.values.count == 3);
  CHECK(Decoded(tokens, R"({"m": [{"t": [1]}, {}]})") ==
        "feature \"t\" (m[1].t): missing, and allow_missing is not set");
  CHECK(DecodeJsonField(tokens + " allow_missing: true", R"({"m": [{"t": [1]}, {}]})",
                        JsonErrors::kStrict)
            .ok());
}

TEST_CASE("Bytes that are no UTF-8, and lone surrogates, are replaced where that is asked for") {
  const std::string text = "name: 's' dtype: 'string'";
  CHECK(Decoded(text, "{\"s\": \"a\xff\xe4\xb8z\"}") ==
        "not JSON: expected UTF-8, found other bytes (byte 8 of the text)");
  CHECK(Decoded(text, "{\"s\": \"a\xff\xe4\xb8z\"}", JsonErrors::kReplace) ==
        "ok: a\xef\xbf\xbd\xef\xbf\xbdz");
  CHECK(Decoded(text, R"({"s": "a\ud800z"})", JsonErrors::kReplace) == "ok: a\xef\xbf\xbdz");
}

TEST_CASE("What is not asked for is checked, and not decoded") {
  CHECK(Decoded(kId, R"({"id": 1, "x": [1e999, "\ud800", {"id": 2}]})") == "ok: 1");
  CHECK(absl::StartsWith(Decoded(kId, R"({"id": 1, "x": [01]})"), "not JSON: "));
  CHECK(absl::StartsWith(Decoded(kId, R"({"id": 1} {"id": 2})"), "not JSON: "));
  // The object around them counts.
  const auto lists = [](size_t depth) {
    return "{\"x\": " + std::string(depth, '[') + std::string(depth, ']') + ", \"id\": 1}";
  };
  CHECK(Decoded(kId, lists(kJsonDepthMax - 1)) == "ok: 1");
  CHECK(Decoded(kId, lists(kJsonDepthMax)) ==
        "not JSON: more than 1024 brackets are open (byte 1029 of the text)");
}

TEST_CASE("A wrong declaration is told by its feature") {
  const struct {
    const char* feature;
    const char* message;
  } cases[] = {
      {"dtype: 'int64'", "a feature has no name"},
      {"name: 'a' dtype: 'int8'",
       "feature \"a\": dtype: expected bool, int32, int64, float32, float64 or string, found "
       "\"int8\""},
      {"name: 'a' dtype: 'int64' path: 'b['",
       "feature \"a\": path \"b[\": expected ] behind [, found the end"},
      {"name: 'a' dtype: 'int64' path: 'b]'",
       "feature \"a\": path \"b]\": found ] without [ before it; in a key it has a backslash "
       "before it"},
      {"name: 'a' dtype: 'int64' path: 'b[-1]'",
       "feature \"a\": path \"b[-1]\": expected [] or the place of a value from 0 on, found [-1]"},
      {"name: 'a' dtype: 'int64' path: 'b[0]c'",
       "feature \"a\": path \"b[0]c\": expected a dot or [ behind ], found \"c\""},
      {"name: 'a' dtype: 'int64' path: 'b\\\\'",
       "feature \"a\": path \"b\\\": expected a character behind the backslash, found the end"},
      {"name: 'a' dtype: 'int64' path: 'b[].c'",
       "feature \"a\": shape: expected an axis for each of the 1 [] in the path, found ()"},
      {"name: 'a' dtype: 'int64' shape: [2, -1]",
       "feature \"a\": shape: expected sizes of -1, then sizes of at least 1 with at most 67108864 "
       "values, found (2, ?)"},
      {"name: 'a' dtype: 'int64' shape: [-1, -1, -1, -1]",
       "feature \"a\": shape: expected at most 3 sizes of -1, found 4"},
      {"name: 'a' dtype: 'int64' shape: 2 form: SPARSE",
       "feature \"a\": form: SPARSE is of shape [-1]; found shape (2,)"},
      {"name: 'a' dtype: 'int64' shape: 2 form: PADDED",
       "feature \"a\": form: PADDED has one size of -1; found shape (2,)"},
      {"name: 'a' dtype: 'int64' allow_missing: true",
       "feature \"a\": allow_missing: is for lists of any size (-1), which are then empty; found "
       "shape (), whose value can have a default_value"},
      {"name: 'a' dtype: 'int64' default_value { floats: 1 }",
       "feature \"a\": default_value: expected values of int64, found others"},
      {"name: 'a' dtype: 'int32' default_value { ints: 3000000000 }",
       "feature \"a\": default_value: expected a value of int32, found 3000000000"},
      {"name: 'a' dtype: 'float32' default_value { floats: 1e39 }",
       "feature \"a\": default_value: expected a value of float32, found 1e+39"},
      {"name: 'a' dtype: 'int64' shape: 3 default_value { ints: [1, 2] }",
       "feature \"a\": default_value: expected 1 or 3 values, found 2"},
  };
  for (const auto& wrong : cases) {
    INFO(wrong.feature);
    const auto row = DecodeJsonField(wrong.feature, "{}", JsonErrors::kStrict);
    CHECK(row.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(row.status().message()) == wrong.message);
  }
}

}  // namespace
}  // namespace penstock
