#include "server/expr/signature.h"

#include <string>

#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

TEST_CASE("A signature gives names and defaults, as they are written") {
  const auto parameters =
      ParametersOf("f(image, size=[1, 2], name=\"a\", low = -1.5, flag=True, none=None)");
  REQUIRE(parameters.size() == 6);
  CHECK((parameters[0].name == "image" && parameters[0].required));
  CHECK(parameters[0].default_text.empty());
  CHECK((parameters[1].name == "size" && !parameters[1].required));
  CHECK(parameters[1].default_text == "[1, 2]");
  CHECK(parameters[2].default_text == "\"a\"");
  CHECK((parameters[3].name == "low" && parameters[3].default_text == "-1.5"));
  CHECK(parameters[4].default_text == "True");
  CHECK(parameters[5].default_text == "None");
}

TEST_CASE("A function without parameters has none") { CHECK(ParametersOf("f()").empty()); }

}  // namespace
}  // namespace penstock::expr
