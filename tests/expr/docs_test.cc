// docs/functions.md is written from the registrations. Run with PENSTOCK_WRITE_DOCS=1 in the environment to renew it.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "server/expr/function.h"
#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

constexpr char kPath[] = PENSTOCK_SOURCE_DIR "/docs/functions.md";
// Made by docs/pictures/make_function_pictures.py.
constexpr char kPictures[] = "pictures/functions/";

bool HasPicture(const std::string& name) {
  return std::filesystem::exists(std::string(PENSTOCK_SOURCE_DIR "/docs/") + kPictures + name +
                                 ".png");
}

constexpr char kHead[] =
    "# The functions of the expression language\n"
    "\n"
    "What expressions are, and which types they have, stands in [expressions.md](expressions.md). "
    "Python has these functions on traced\n"
    "values, in `penstock.image`, `penstock.io` and `penstock.functions` ([python.md](python.md)). "
    "An argument with a default may be left\n"
    "out, and each may be given by name. Where a manual calls an argument a constant, it is known "
    "when the pipeline is compiled.\n"
    "This page is written from the registrations of the functions; tests/expr/docs_test.cc renews "
    "it.\n";

// "image: an image" of a parameter becomes an item of a list.
bool IsParameter(const FunctionEntry& entry, const std::string& line) {
  std::stringstream names(line.substr(0, line.find(':')));
  if (line.find(':') == std::string::npos) return false;
  for (std::string name; std::getline(names, name, ',');) {
    name = name.substr(name.find_first_not_of(' '));
    bool known = false;
    for (const Parameter& parameter : entry.parameters) known |= parameter.name == name;
    if (!known) return false;
  }
  return true;
}

std::string Page() {
  std::string text = kHead;
  for (const FunctionEntry* entry : AllFunctions()) {
    const std::string name(entry->name());
    if (name.substr(0, 5) == "test_") continue;  // registered by other tests of this program
    text += "\n## " + name + "\n\n`" + std::string(entry->signature()) + "`\n\n";
    std::stringstream lines{std::string(entry->doc())};
    for (std::string line; std::getline(lines, line);) {
      text += (IsParameter(*entry, line) ? "* " : "") + line + "\n";
    }
    if (HasPicture(name)) text += "\n![" + name + "](" + kPictures + name + ".png)\n";
  }
  return text;
}

TEST_CASE("The manual of functions is the registry's") {
  if (std::getenv("PENSTOCK_WRITE_DOCS") != nullptr) std::ofstream(kPath) << Page();
  std::stringstream committed;
  committed << std::ifstream(kPath).rdbuf();
  CHECK(committed.str() == Page());
}

// Those that read files, or whose result is no picture.
const std::set<std::string> kWithoutPicture = {"encode_jpeg", "encode_png"};

TEST_CASE("Every function of images has a picture") {
  int pictures = 0;
  for (const FunctionEntry* entry : AllFunctions()) {
    const std::string name(entry->name());
    if (name.substr(0, 5) == "test_" || entry->parameters[0].name != "image") continue;
    CAPTURE(name);
    CHECK(HasPicture(name) == !kWithoutPicture.contains(name));
    ++pictures;
  }
  CHECK(pictures > 30);
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
