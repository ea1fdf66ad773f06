#include "base/shown_url.h"

#include <string>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("an address is shown without what may be a secret") {
  const struct {
    const char* text;
    const char* shown;
  } kCases[] = {
      {"https://host.example/a", "https://host.example/a"},
      {"https://user:secret@host.example/a", "https://host.example/a"},
      {"https://host.example/a?signature=secret", "https://host.example/a"},
      {"https://host.example/a#secret", "https://host.example/a"},
      {"https://host.example?secret", "https://host.example"},
      {"https://host.example/a@b", "https://host.example/a@b"},
      {"ftp://user:secret@host.example/a?secret", "ftp://host.example/a"},
      {"s3://AKID:secret@bucket/key", "s3://bucket/key"},
      {"s3://bucket/odd?key#1@2", "s3://bucket/odd?key#1@2"},
      {"s3://bucket/key?X-Amz-Signature=secret", "s3://bucket/key"},
      {"s3://bucket/key?X-Amz-Security-Token=secret", "s3://bucket/key"},
      {"gs://bucket/key?X-Goog-Credential=secret", "gs://bucket/key"},
      {"http://proxy:secret@127.0.0.1:3128", "http://127.0.0.1:3128"},
      {"/data/a?b@c", "/data/a?b@c"},
      {"", ""},
  };
  for (const auto& one : kCases) {
    INFO(one.text);
    CHECK(ShownUrl(one.text) == one.shown);
  }
  const std::string longest = "https://host.example/" + std::string(5000, 'a');
  CHECK(ShownUrl(longest).size() == 512);
  // What tells that a signature follows lies behind the cut.
  const std::string key = "s3://bucket/a?secret" + std::string(600, 'a') + "signature=1";
  CHECK(ShownUrl(key) == "s3://bucket/a");
}

}  // namespace
}  // namespace penstock
