// Functions of strings, by numbers that tell what they have made. What each of them makes is
// compared with TensorFlow's in tests/client/python_strings_test.py.
#include "server/expr/texts.h"

#include "server/expr/function.h"
#include "server/expr/program.h"
#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

// The float that the text makes of each of the strings.
std::vector<float> Run(const std::string& text, std::vector<std::string> strings,
                       RowStatus* status = nullptr) {
  MapSource map;
  map.stage = "map";
  map.outs = {"y = float32(" + text + ")"};
  auto program = Compile({{"x", {DType::kString, {}}}}, {map});
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  std::vector<RowBytes> rows;
  for (std::string& string : strings) {
    const size_t size = string.size();
    string.resize(size + 64);
    rows.push_back({reinterpret_cast<const uint8_t*>(string.data()), size});
  }
  std::vector<float> out(strings.size() + 16, -7);
  const Column in[] = {{nullptr, 0, rows.data()}};
  uint8_t* const outs[] = {reinterpret_cast<uint8_t*>(out.data())};
  Arena arena;
  const RowStatus result = (*program)->Run(static_cast<int>(rows.size()), in, outs, arena);
  if (status != nullptr) *status = result;
  CHECK((status != nullptr || result.ok()));
  out.resize(strings.size());
  return out;
}

TEST_CASE("strings are compared and joined by the operators of numbers") {
  const std::vector<std::string> strings = {"cat", "", "a \"cat\"", "ca"};
  CHECK(Run("x == \"cat\"", strings) == std::vector<float>{1, 0, 0, 0});
  CHECK(Run("\"cat\" != x", strings) == std::vector<float>{0, 1, 1, 1});
  CHECK(Run("x + \"t\" == \"cat\"", strings) == std::vector<float>{0, 0, 0, 1});
  CHECK(Run("x == \"a \\\"cat\\\"\"", strings) == std::vector<float>{0, 0, 1, 0});
  CHECK(Run("string_length(x + x + \"!\")", strings) == std::vector<float>{7, 1, 15, 5});
}

TEST_CASE("the parts of a text are a tensor of strings") {
  const std::vector<std::string> strings = {"a,bb,,ccc", "", ",", std::string(5000, 'x') + ",y"};
  CHECK(Run("sum(string_length(string_split(x, \",\")))", strings) ==
        std::vector<float>{6, 0, 0, 5001});
  CHECK(Run("sum(int64(string_split(x, \",\") == \"\"))", strings) ==
        std::vector<float>{1, 1, 2, 0});
  CHECK(Run("sum(string_length(string_upper(string_split(x, \",\")) + x))", strings) ==
        std::vector<float>{6 + 4 * 9, 0, 2, 5001 + 2 * 5002});
  CHECK(Run("string_length(string_split(x, \",\")[-1])", strings) ==
        std::vector<float>{3, 0, 0, 1});
}

TEST_CASE("labels are numbered by a vocabulary") {
  CHECK(Run("string_lookup(x, \"cat\\ndog\", default=-1)", {"cat\\ndog", "dog"})[1] == -1);
  CHECK(Run("string_lookup(x, \"cat\ndog\", default=-1)", {"dog", "cow", "", "cat"}) ==
        std::vector<float>{1, -1, -1, 0});
  RowStatus status;
  Run("string_lookup(x, \"cat\ndog\")", {"cat", "c\now"}, &status);
  CHECK(status.row == 1);
  CHECK(status.status.code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(status.status.message()),
             Catch::Matchers::Contains("one of the 2 words of the vocabulary, found \"c\\now\""));
}

TEST_CASE("a vocabulary may be a list, and words of a list are taken by number") {
  CHECK(Run("string_lookup(x, [\"cat\", \"d\nog\", \"\"], default=-1)",
            {"d\nog", "cow", "", "cat"}) == std::vector<float>{1, -1, 2, 0});
  // The second way by way of the first.
  CHECK(Run("string_length(take([\"a\", \"\", \"ccc\"], string_lookup(x, [\"p\", \"q\", \"r\"])))",
            {"r", "q", "p", "r"}) == std::vector<float>{3, 0, 1, 3});
  CHECK(Run("string_length(reduce_join(take([[\"a\", \"bb\"], [\"ccc\", \"\"]], "
            "string_lookup(x, [\"p\", \"q\"]), axis=-2)))",
            {"q", "p"}) == std::vector<float>{3, 3});
  RowStatus status;
  Run("string_length(take([\"a\", \"b\"], string_lookup(x, [\"p\", \"q\", \"r\"])))", {"q", "r"},
      &status);
  CHECK(status.row == 1);
  CHECK_THAT(std::string(status.status.message()),
             Catch::Matchers::Contains("take: index 2 is out of an axis of 2"));
}

TEST_CASE("a part beyond a text is an error of its row") {
  CHECK(Run("string_length(substr(x, 2, 5))", {"abc", "ab", "abcdefghi"}) ==
        std::vector<float>{1, 0, 5});
  RowStatus status;
  Run("string_length(substr(x, 2, 5))", {"abc", "a"}, &status);
  CHECK(status.row == 1);
  CHECK_THAT(std::string(status.status.message()),
             Catch::Matchers::Contains("outside of the text: 2 of 1"));
}

TEST_CASE("characters of UTF-8 are counted, whatever the bytes are") {
  CHECK(Run("string_length(x, unit=\"UTF8_CHAR\")", {"aé世", "\xff\x80\x80", "\x80"}) ==
        std::vector<float>{3, 1, 0});
  CHECK(Run("string_length(substr(x, -2, 1, unit=\"UTF8_CHAR\"))", {"aé世", "🙂b"}) ==
        std::vector<float>{2, 4});
}

TEST_CASE("characters are taken apart, whatever the bytes are") {
  const std::vector<std::string> strings = {"aé", "", "\xe4\xb8", "\xf0\x9f\x99", "\xed\xa0\x80"};
  CHECK(Run("sum(unicode_decode(x))", strings) ==
        std::vector<float>{97 + 0xe9, 0, 0xfffd, 0xfffd, 3 * 0xfffd});
  CHECK(Run("sum(string_length(unicode_split(x, errors=\"ignore\")))", strings) ==
        std::vector<float>{3, 0, 0, 0, 0});
  RowStatus status;
  Run("sum(unicode_decode(x, errors=\"strict\"))", {"a", "a\xc3"}, &status);
  CHECK(status.row == 1);
  CHECK_THAT(std::string(status.status.message()), Catch::Matchers::Contains("other bytes at 1"));
}

TEST_CASE("base64 is read in both alphabets") {
  CHECK(Run("string_length(decode_base64(x))", {"-_8=", "+/8", "", "AAAA"}) ==
        std::vector<float>{2, 2, 0, 3});
  RowStatus status;
  Run("string_length(decode_base64(x))", {"A"}, &status);
  CHECK(status.status.code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("what a rewritten text may come to is bounded before it is made") {
  const std::string rewrite(4000, 'x'), many(1 << 20, 'a');
  const auto replace = [&](const std::string& pattern, const std::string& with) {
    return "string_length(regex_replace(x, \"" + pattern + "\", \"" + with + "\"))";
  };
  RowStatus status;
  Run(replace("a", rewrite), {"ab", many}, &status);
  CHECK(status.row == 1);
  CHECK(status.status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(status.status.message()) ==
        "result larger than the limit: 4195352576 > 1073741824 bytes of 1048576 matches");
  Run(replace("", rewrite), {many}, &status);
  CHECK(status.status.code() == absl::StatusCode::kResourceExhausted);
  // Few matches in a long text.
  CHECK(Run(replace("b", rewrite), {many + "b" + many}) == std::vector<float>{(2 << 20) + 4000});
  CHECK(Run(replace("(a)a*", "\\\\1\\\\0"), {many}) == std::vector<float>{(1 << 20) + 1});
}

TEST_CASE("line ends in front of a field of CSV are passed over") {
  const std::vector<std::string> records = {"\n12,3", "\r\n12,\n3", "12,\r\n\n\"3\"", "\n\"12\",3"};
  CHECK(Run("decode_csv(x, 2, 0, \"int64\")", records) == std::vector<float>{12, 12, 12, 12});
  CHECK(Run("decode_csv(x, 2, 1, \"int64\")", records) == std::vector<float>{3, 3, 3, 3});
  CHECK(Run("string_length(decode_csv(x, 1, 0, \"string\"))", {"\"a\r\nb\"", "\n\"\n\""}) ==
        std::vector<float>{4, 1});
  // Behind a delimiter there is a field, behind a line end none.
  CHECK(Run("decode_csv(x, 1, 0, \"int64\")", {"1,\n", "1"}) == std::vector<float>{1, 1});
  CHECK(Run("decode_csv(x, 2, 1, \"int64\", default=\"7\")", {"1,", ",\n\n5"}) ==
        std::vector<float>{7, 5});
  CHECK(Run("decode_csv(x, 3, 2, \"int64\", default=\"7\")", {"1,\n,", ",,"}) ==
        std::vector<float>{7, 7});
  RowStatus status;
  Run("decode_csv(x, 1, 0, \"int64\", default=\"7\")", {"1", "\r\n"}, &status);
  CHECK(status.row == 1);
  CHECK_THAT(std::string(status.status.message()),
             Catch::Matchers::Contains("expected 1 fields, found 0"));
}

TEST_CASE("a line end inside of a field of CSV without quotation marks is an error of its row") {
  const struct {
    std::string record;
    std::string message;
  } cases[] = {{"1\n,2", "(byte 1 of the record)"},
               {"1,2\n", "(byte 3 of the record)"},
               {"1,\na\rb", "(byte 4 of the record)"},
               {"1\r\n2,3", "(byte 1 of the record)"}};
  for (const std::string quotes : {"", ", use_quote_delim=False"}) {
    for (const auto& test : cases) {
      CAPTURE(quotes, test.record);
      RowStatus status;
      Run("string_length(decode_csv(x, 0, 0, \"string\"" + quotes + "))", {"1,2", test.record},
          &status);
      CHECK(status.row == 1);
      CHECK(status.status.code() == absl::StatusCode::kDataLoss);
      CHECK_THAT(std::string(status.status.message()),
                 Catch::Matchers::Contains("has a line end inside " + test.message));
    }
  }
}

TEST_CASE("a fixed length of 0 takes all bytes, as none does") {
  const std::vector<std::string> strings = {"abc", "", "a"};
  const std::vector<float> expected = {97 + 98 + 99, 0, 97};
  CHECK(Run("sum(int64(decode_raw(x, \"uint8\")))", strings) == expected);
  CHECK(Run("sum(int64(decode_raw(x, \"uint8\", fixed_length=0)))", strings) == expected);
  CHECK(Run("sum(int64(decode_raw(x, \"uint8\", fixed_length=2)))", strings) ==
        std::vector<float>{97 + 98, 0, 97});
}

// Takes nothing.
class Refusing final : public RowOutput {
 public:
  void SetShape(const Shape&) override {}
  uint8_t* Reserve(size_t) override {
    FAIL("memory for more than the limit");
    return nullptr;
  }
  void Commit() override {}
};

TEST_CASE("what a text may be split into is bounded before it is made") {
  // Nobody looks into them.
  const char byte = 'x';
  const absl::string_view half(&byte, size_t{1} << 29);
  const absl::string_view halves[] = {half, half};
  Refusing out;
  const absl::Status parts = PutTexts(halves, out);
  CHECK(parts.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(parts.message()) ==
        "results larger than the limit: 1073741832 > 1073741824 bytes of 2 strings");

  const FunctionEntry* const entry = FindFunction("bytes_split");
  REQUIRE(entry != nullptr);
  std::vector<Argument> arguments(1);
  arguments[0].type = {DType::kString, {}};
  const auto bound = std::get<RowFunction>(entry->function).bind(arguments);
  REQUIRE(bound.ok());
  const RowValue text[] = {{reinterpret_cast<const uint8_t*>(&byte), size_t{1} << 28, {}}};
  Arena arena;
  const absl::Status bytes = bound->kernel->Run(text, arena, out);
  CHECK(bytes.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(bytes.message()) == "text larger than the limit: 268435456 > 214748364 bytes");
}

}  // namespace
}  // namespace penstock::expr
