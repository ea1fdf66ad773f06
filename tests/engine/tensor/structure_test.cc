#include "server/engine/tensor/structure.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("the paths of a structure's tensors") {
  struct Case {
    std::string structure;
    std::vector<std::string> paths;
  };
  const Case cases[] = {
      {"null", {"value"}},
      {"[null]", {"0"}},
      {R"({"b":null,"a":null})", {"b", "a"}},
      {R"([null,{"a":null,"b":[null,null]}])", {"0", "1/a", "1/b/0", "1/b/1"}},
      {R"({"image/encoded":null})", {"image/encoded"}},
      {"[]", {}},
  };
  for (const Case& c : cases) {
    INFO(c.structure);
    const auto paths = StructurePaths(c.structure);
    REQUIRE(paths.ok());
    CHECK(*paths == c.paths);
  }
}

TEST_CASE("what is no structure is refused") {
  for (const std::string& structure :
       {std::string(), std::string("nil"), std::string("[null"), std::string("[1]"),
        std::string(R"({"a":"b"})"), std::string("[null] null"), std::string("\xff"),
        std::string(100'000, ' ') + "null", std::string(50'000, '['),
        std::string(65, '[') + "null" + std::string(65, ']')}) {
    INFO(structure.substr(0, 80));
    CHECK(StructurePaths(structure).status().code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK(StructurePaths(std::string(60, '[') + "null" + std::string(60, ']')).ok());
}

}  // namespace
}  // namespace penstock
