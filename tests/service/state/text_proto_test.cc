#include "server/service/state/text_proto.h"

#include <string>

#include "penstock/v1/pipeline.pb.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

std::string ErrorOf(const std::string& text) {
  v1::PipelineSpec spec;
  const absl::Status status = ParseTextProto(text, "spec.textproto", &spec);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST_CASE("fault 54: an error of text has file, line and column, and the nearest field") {
  CHECK(ErrorOf("name: 'x'\nstage {\n  shuffel { buffer_size: 2 } }") ==
        "spec.textproto:3:11: unknown field \"shuffel\" in Stage, did you mean \"shuffle\"?");
  CHECK(ErrorOf("stage { batch { batchsize: 2 } }") ==
        "spec.textproto:1:26: unknown field \"batchsize\" in Batch, did you mean "
        "\"batch_size\"?");
  // Nothing is near: all are named.
  CHECK(ErrorOf("stage { take { zzzzzzzz: 2 } }") ==
        "spec.textproto:1:24: unknown field \"zzzzzzzz\" in Take; known are count");
  CHECK(ErrorOf("stage { take { count: 'x' } }") ==
        "spec.textproto:1:23: Expected integer, got: 'x'");
  CHECK(ErrorOf("name: 'a'\nname: 'b'") ==
        "spec.textproto:2:5: Non-repeated field \"name\" is specified multiple times.");
  CHECK(ErrorOf("stage {").find("spec.textproto:1:8: ") == 0);
}

TEST_CASE("a string that is not UTF-8 is refused with its place, a comment or bytes are not") {
  CHECK(ErrorOf("workers: 1\nname: 'caf\xe9'") ==
        "spec.textproto:2:1: name: expected text in UTF-8, found other bytes");
  CHECK(ErrorOf("name: 'x'\nstage { tfrecord {\n  files: ['a', 'b\\377'] } }") ==
        "spec.textproto:3:3: files: expected text in UTF-8, found other bytes");
  // A surrogate, and a character in more bytes than it needs.
  for (const char* bytes : {"\xed\xa0\x80", "\xc0\xaf", "\xe2\x82"})
    CHECK(ErrorOf(std::string("name: '") + bytes + "'").find("spec.textproto:1:1: name") == 0);
  v1::PipelineSpec spec;
  CHECK(ParseTextProto("name: 'caf\xc3\xa9' # caf\xe9", "spec", &spec).ok());
}

TEST_CASE("text has a limit of size and depth") {
  const std::string long_text(kMaxTextBytes + 1, '#');
  CHECK(ErrorOf(long_text) == "spec.textproto: text longer than limit: 1048577 > 1048576 bytes");
  v1::PipelineSpec spec;
  CHECK(ParseTextProto(long_text.substr(1), "spec", &spec).ok());
}

TEST_CASE("good text fills the message") {
  v1::PipelineSpec spec;
  REQUIRE(ParseTextProto("name: 'x' # a comment\nworkers: 3", "spec", &spec).ok());
  CHECK(spec.name() == "x");
  CHECK(spec.workers() == 3);
}

}  // namespace
}  // namespace penstock
