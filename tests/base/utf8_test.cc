#include "base/utf8.h"

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("what messages quote is UTF-8, whatever the bytes are") {
  CHECK(ReadableUtf8("a\nb \xc3\xbc \xf0\x9f\x99\x82") == "a\nb \xc3\xbc \xf0\x9f\x99\x82");
  CHECK(ReadableUtf8("a\xff\xe4\xb8z") == "a\\xff\\xe4\\xb8z");
  CHECK(ReadableUtf8("") == "");
  CHECK(ReadableUtf8(std::string("\0", 1)) == std::string("\0", 1));
}

TEST_CASE("a message that is cut ends with a whole character") {
  CHECK(ReadableUtf8("\xc3\xbc\xc3\xbc", 4) == "\xc3\xbc\xc3\xbc");
  CHECK(ReadableUtf8("\xc3\xbc\xc3\xbc", 3) == "\xc3\xbc");
  CHECK(ReadableUtf8("ab\xff", 5) == "ab");
  CHECK(ReadableUtf8("ab\xff", 6) == "ab\\xff");
  CHECK(ReadableUtf8("a", 0) == "");
}

}  // namespace
}  // namespace penstock
