// docs/functions.json is written from the registrations. Run with PENSTOCK_WRITE_DOCS=1 in the
// environment to renew it; docs/make_functions_page.py makes the manual, docs/functions.md, of it.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "server/expr/function.h"
#include "server/expr/signature.h"
#include "tests/support/catch.h"
#include "tests/support/tree.h"

namespace penstock::expr {
namespace {

const std::string kPath = testing::InTree("docs/functions.json");
// Made by docs/pictures/make_function_pictures.py.
constexpr char kPictures[] = "pictures/functions/";

bool HasPicture(const std::string& name) {
  return std::filesystem::exists(testing::InTree("docs/") + kPictures + name + ".png");
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter == '\n' ? "\\n" : std::string(1, letter);
  }
  return quoted + "\"";
}

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

// In Markdown.
std::string Manual(const FunctionEntry& entry) {
  std::string text;
  std::stringstream lines{std::string(entry.doc())};
  for (std::string line; std::getline(lines, line);) {
    text += (text.empty() ? "" : "\n") + std::string(IsParameter(entry, line) ? "* " : "") + line;
  }
  return text;
}

// Numbers, texts and lists of these are written alike in Python and in JSON.
std::string DefaultJson(std::string_view text) {
  if (text == "None") return "null";
  if (text == "True") return "true";
  if (text == "False") return "false";
  return std::string(text);
}

std::string Registry() {
  std::string text = "[";
  for (const FunctionEntry* entry : AllFunctions()) {
    const std::string name(entry->name());
    if (name.substr(0, 5) == "test_") continue;  // registered by other tests of this program
    std::string parameters;
    for (const SignatureParameter& parameter : ParametersOf(entry->signature())) {
      parameters += (parameters.empty() ? "" : ", ") + ("{\"name\": " + Quoted(parameter.name));
      if (!parameter.required)
        parameters += ", \"default\": " + DefaultJson(parameter.default_text);
      parameters += "}";
    }
    text += (text.size() == 1 ? "\n" : ",\n");
    text += "  {\n    \"name\": " + Quoted(name) +
            ",\n    \"signature\": " + Quoted(entry->signature()) + ",\n    \"parameters\": [" +
            parameters + "],\n    \"doc\": " + Quoted(Manual(*entry)) + "\n  }";
  }
  return text + "\n]\n";
}

TEST_CASE("The list of functions is the registry's") {
  if (std::getenv("PENSTOCK_WRITE_DOCS") != nullptr) std::ofstream(kPath) << Registry();
  std::stringstream committed;
  committed << std::ifstream(kPath).rdbuf();
  CHECK(committed.str() == Registry());
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
