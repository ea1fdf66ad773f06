#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "penstock/v1/pipeline.pb.h"
#include "tests/support/catch.h"
#include "tests/support/tree.h"

namespace penstock {
namespace {

const std::filesystem::path kRoot = testing::InTree("");

class Errors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    text += std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": " + message + "\n";
  }
  std::string text;
};

v1::PipelineSpec Parse(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  v1::PipelineSpec spec;
  Errors errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  INFO(path.string() << ":" << errors.text);
  const bool parsed = parser.ParseFromString(text, &spec);
  CHECK(errors.text == "");
  REQUIRE(parsed);
  return spec;
}

TEST_CASE("Every spec of the project is one") {
  std::set<std::string> names;
  int specs = 0;
  for (const char* folder : {"config/pipelines", "examples"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kRoot / folder)) {
      if (entry.path().extension() != ".textproto") continue;
      INFO(entry.path().string());
      const v1::PipelineSpec spec = Parse(entry.path());
      CHECK(spec.name() == entry.path().stem().string());
      CHECK(spec.stage_size() >= 2);
      CHECK((spec.stage(0).has_tfrecord() || spec.stage(0).has_files() || spec.stage(0).has_zip()));
      ++specs;
      names.insert(spec.name());
    }
  }
  CHECK(specs >= 4);
  CHECK(names.size() == static_cast<size_t>(specs));
}

TEST_CASE("The two chess pipelines differ in the type of their numbers alone") {
  std::string wide = Parse(kRoot / "config/pipelines/chess.textproto").DebugString();
  std::string narrow = Parse(kRoot / "config/pipelines/chess_float32.textproto").DebugString();
  CHECK(wide != narrow);
  for (size_t at; (at = wide.find("float64")) != std::string::npos;) wide.replace(at, 7, "float32");
  const size_t at = narrow.find("chess_float32");
  REQUIRE(at != std::string::npos);
  narrow.replace(at, 13, "chess");
  CHECK(wide == narrow);
}

}  // namespace
}  // namespace penstock
