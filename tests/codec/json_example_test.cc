#include "server/codec/json_example.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

absl::StatusOr<std::string> WithFloats(const std::string& values) {
  return SerializeJsonExample(
      absl::StrCat(R"({"features": {"feature": {"x": {"floatList": {"value": )", values, "}}}}}"));
}

TEST_CASE("A null in a list of a JSON Example is an error, and not a value less") {
  for (const char* values : {"[null]", "[1.5, null, 2]", "[1,\nnull]", "['1',null]"}) {
    INFO(values);
    const auto example = WithFloats(values);
    REQUIRE(example.status().code() == absl::StatusCode::kDataLoss);
    CHECK(example.status().message() == "not a tf.train.Example in JSON: a list has a null in it");
  }
  CHECK(WithFloats("[1.5, 2]").ok());
}

TEST_CASE("Lists in lists of a JSON Example end before they take memory") {
  const std::string deep(200, '['), end(200, ']');
  for (const std::string& values : {deep, deep + end, std::string(1 << 20, '[')}) {
    const auto example = WithFloats(values);
    REQUIRE(example.status().code() == absl::StatusCode::kDataLoss);
    CHECK(example.status().message() ==
          "not a tf.train.Example in JSON: more than 100 brackets are open");
  }
  // Those of texts are none.
  CHECK(WithFloats("[\"" + deep + "\"]").status().message() !=
        "not a tf.train.Example in JSON: more than 100 brackets are open");
}

TEST_CASE("A null elsewhere in a JSON Example stands for nothing, and in a string for itself") {
  CHECK(WithFloats("null").ok());
  for (const char* json :
       {R"({"features": null})", R"({"features": {"feature": {"null": {}, "[null": {}}}})",
        R"({"features": {"feature": {"[\"[null": {"bytesList": {"value": ["null"]}}, "b": null}}})",
        R"({'features': {'feature': {'[\'"[null': {'bytesList': {'value': ['null', '']}}}}})"}) {
    INFO(json);
    CHECK(SerializeJsonExample(json).ok());
  }
}

}  // namespace
}  // namespace penstock
