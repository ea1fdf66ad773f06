// The manual lists exactly the functions that are registered. Run with PENSTOCK_WRITE_DOCS=1 in the environment to renew the list.
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "server/expr/function.h"
#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

constexpr char kPath[] = PENSTOCK_SOURCE_DIR "/docs/expressions.md";
constexpr char kHeading[] = "## Functions\n\n";

std::string List() {
  std::string text;
  for (const FunctionEntry* entry : AllFunctions()) {
    if (entry->name().substr(0, 5) == "test_")
      continue;  // registered by other tests of this program
    text += "* `" + std::string(entry->signature()) + "`: ";
    // Further lines belong to the same item.
    for (const char c : entry->doc()) text += c == '\n' ? std::string("\n  ") : std::string(1, c);
    while (text.find("\n  \n") != std::string::npos) text.replace(text.find("\n  \n"), 4, "\n\n");
    text += "\n";
  }
  return text;
}

TEST_CASE("The manual's list of functions is the registry's") {
  std::ifstream in(kPath);
  std::stringstream buffer;
  buffer << in.rdbuf();
  std::string text = buffer.str();
  const size_t start = text.find(kHeading);
  REQUIRE(start != std::string::npos);
  const std::string head = text.substr(0, start + sizeof(kHeading) - 1);
  if (std::getenv("PENSTOCK_WRITE_DOCS") != nullptr) {
    std::ofstream(kPath) << head << List();
    text = head + List();
  }
  CHECK(text.substr(head.size()) == List());
}

TEST_CASE("Every function has a manual and a name that its signature repeats") {
  std::set<std::string_view> docs;
  for (const FunctionEntry* entry : AllFunctions()) {
    CAPTURE(entry->name());
    CHECK(entry->signature().substr(0, entry->name().size() + 1) ==
          std::string(entry->name()) + "(");
    CHECK(entry->doc().size() > 5);
    CHECK(entry->doc().back() == '.');
    CHECK_FALSE(entry->parameters.empty());
    CHECK(docs.insert(entry->doc()).second);
    CHECK(FindFunction(entry->name()) == entry);
  }
  CHECK(docs.size() > 40);
  CHECK(FindFunction("no_such_function") == nullptr);
}

}  // namespace
}  // namespace penstock::expr
